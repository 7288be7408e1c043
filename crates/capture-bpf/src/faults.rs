//! Single page faults of followed processes: address and time.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray, RingBuf};
use plumb_process::Host;
use plumb_process::usage::monotonic_ns;

use crate::follow::Followed;
use crate::object::{Machine, Watch, load_program, sum, take};
use crate::refusal::{LoadError, refused};
use crate::switch::{Probes, Switch};
use crate::wire::{FAULTS_DROPPED, Fault};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = crate::object::object!("faults");
/// The program that follows new processes.
const FORKS: Watch = ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork");

/// The loaded programs. Dropping this ends them.
pub struct Faults {
    // Keeps programs and links.
    _bpf: Ebpf,
    ring: RingBuf<MapData>,
    counters: Arc<PerCpuArray<MapData, u64>>,
    probes: Arc<Mutex<Probes>>,
    followed: Followed,
}

impl Faults {
    /// Loads the programs and starts them; they record faults once told to begin, and never those of this process.
    pub fn load() -> Result<Self, LoadError> {
        let machine = Machine::find(&["task_struct"], &[FORKS])?;
        let mut bpf = machine
            .loader()
            .override_global("own_pid", &std::process::id(), true)
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(refused("maps"))?;
        machine.watch(&mut bpf, FORKS)?;
        let program = load_program(&mut bpf, "on_fault")?;
        let mut probes = Probes::default();
        probes
            .add_at_page_faults(&program, &Host::read().cpus)
            .map_err(refused("an event of page faults"))?;
        let followed = Followed::take(&machine, &mut bpf)?;
        Ok(Self {
            ring: take(&mut bpf, "ring")?,
            counters: Arc::new(take(&mut bpf, "counters")?),
            probes: Arc::new(Mutex::new(probes)),
            followed,
            _bpf: bpf,
        })
    }

    /// Restricts recording to followed processes, and adds this one, given by its pidfd, with its future children.
    pub fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)
    }

    /// Starts recording faults: of followed processes, or, if none was given, of all but this process.
    pub fn begin(&mut self) -> io::Result<()> {
        self.followed.begin()
    }

    /// A switch that turns recording off and on while the ring is read.
    pub fn switch(&self) -> Switch {
        Switch::new(self.followed.teller(), self.probes.clone(), (self.counters.clone(), FAULTS_DROPPED))
    }

    /// Takes the faults that are recorded now, in order. Ends also where faults come faster than they are read.
    pub fn take(&mut self, mut each: impl FnMut(Fault)) -> usize {
        let (mut taken, begin_ns, mut is_behind) = (0, monotonic_ns(), true);
        while is_behind && let Some(item) = self.ring.next() {
            if let Some(fault) = read(&item) {
                is_behind = fault.time_ns <= begin_ns;
                each(fault);
            }
            taken += 1;
        }
        taken
    }

    /// Number of faults dropped because the ring was full.
    pub fn dropped(&self) -> u64 {
        sum(&self.counters, FAULTS_DROPPED)
    }
}

/// Decodes a message; `None` if it is too short.
fn read(bytes: &[u8]) -> Option<Fault> {
    let (words, rest) = bytes.as_chunks::<8>();
    let [time, address, ids] = words else { return None };
    let (pid, tid) = ids.split_first_chunk::<4>()?;
    rest.is_empty().then_some(Fault {
        time_ns: u64::from_ne_bytes(*time),
        address: u64::from_ne_bytes(*address),
        pid: u32::from_ne_bytes(*pid),
        tid: u32::from_ne_bytes(*tid.first_chunk()?),
    })
}
