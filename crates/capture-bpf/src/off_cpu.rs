//! How long threads are off the processor: the programs at the scheduler's tracepoints (bpf/offcpu.h), and what they know.
//!
//! Not here: the stacks and times that they send and count, which come as all messages and counts do.

mod threads;

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use aya::Ebpf;
use aya::maps::{HashMap, MapData, PerCpuArray};
use plumb_capture_api::{OffThread, TimeOff, Unmeasured};

use crate::object::{Machine, Watch, each_task, sum, take, take_descriptor};
use crate::refusal::LoadError;
use crate::wire::{self, OFF_LOST, OFF_LOST_NS, OFF_SHORT, OFF_SHORT_NS, Off, PACE_BITS, Pace};

/// Where threads are switched out.
const SWITCH: Watch = ("on_switch", "sched_switch", "btf_trace_sched_switch");
/// Where they are back: Linux 6.15 and newer.
const SWITCHED: Watch = ("on_switched", "sched_exit_tp", "btf_trace_sched_exit_tp");
/// Instead of the last two where there is no such place.
const SWITCH_ALONE: Watch = ("on_switch_alone", SWITCH.1, SWITCH.2);
/// And where they are woken.
const WAKEUP: Watch = ("on_wakeup", "sched_wakeup", "btf_trace_sched_wakeup");
/// What is called for each thread.
const THREADS: &str = "on_thread";
/// All places.
pub(crate) const WATCHES: [Watch; 3] = [WAKEUP, SWITCH, SWITCHED];

// SAFETY (all): structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Off {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Pace {}
}

/// How time off the processor is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// Times of which neither the part blocked nor the part waited is as long as this, in nanoseconds, are only summed up.
    pub min_ns: u64,
    /// About so many stacks are taken a second on each processor at most.
    pub stacks_per_second: u32,
    /// Stacks are walked in the kernel. Otherwise each is copied.
    pub walks: bool,
    /// Stacks may be taken as threads come back, where the kernel tells of that (Linux 6.15 and newer): then each stands for a known
    /// time. Otherwise they are taken as threads go, and times beyond [`OffCpu::stacks_per_second`] have none.
    pub looks_back: bool,
}

impl OffCpu {
    /// What the programs are told of it before they are loaded: `min_ns`, `most_stacks`, `walks`.
    pub(crate) fn numbers(&self) -> (u64, u32, u32) {
        let most = (u64::from(self.stacks_per_second) << PACE_BITS) / 1_000_000_000;
        (self.min_ns, u32::try_from(most).unwrap_or(u32::MAX).max(1), self.walks.into())
    }
}

/// The programs, loaded, and their maps.
pub(crate) struct Switches {
    off: HashMap<MapData, u32, Off>,
    paces: PerCpuArray<MapData, Pace>,
    copiers: OwnedFd,
    looks_back: bool,
    /// Why threads that are off can't be read, if they can't.
    threads: Result<(), LoadError>,
}

impl Switches {
    /// Loads the programs and starts them: they wait to be told to begin.
    pub fn load(machine: &Machine, bpf: &mut Ebpf, looks_back: bool) -> Result<Self, LoadError> {
        let looks_back = looks_back && machine.watch(bpf, SWITCHED).is_ok();
        if looks_back {
            machine.watch(bpf, SWITCH)?;
        } else {
            machine.watch(bpf, SWITCH_ALONE)?;
            machine.watch(bpf, WAKEUP)?;
        }
        // It is tried: loading alone does not show that there will be a file.
        let threads = machine.load_each_task(bpf, THREADS).and_then(|_| each_task(bpf, THREADS).map(drop));
        Ok(Self {
            off: take(bpf, "off")?,
            paces: take(bpf, "paces")?,
            copiers: take_descriptor(bpf, "copiers")?,
            looks_back,
            threads,
        })
    }

    /// Whether stacks are taken as threads come back.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The map of the events that write copies.
    pub fn copiers(&self) -> io::Result<OwnedFd> {
        self.copiers.try_clone()
    }

    /// Why who is off can't be told before it runs, if it can't.
    pub fn without_threads(&self) -> Option<&LoadError> {
        self.threads.as_ref().err()
    }

    /// Who is off and not known to be, with the stack: those that have been since before this was asked first, and those whose stack was not walked
    /// as they went. Times of all others are counted up to now. `bpf`: what these programs are in.
    pub fn threads(&self, bpf: &mut Ebpf) -> io::Result<Vec<OffThread>> {
        self.threads.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
        let mut file = each_task(bpf, THREADS).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes.chunks_exact(size_of::<wire::OffThread>()).filter_map(threads::read).collect())
    }

    /// Who is off.
    pub fn pending(&self, now_ns: u64) -> Vec<TimeOff> {
        let all = self.off.iter().filter_map(Result::ok);
        let times = all.filter(|(_, off)| off.out_ns != 0).map(|(tid, off)| {
            let woken = if off.woken_ns == 0 { now_ns } else { off.woken_ns };
            TimeOff {
                out_ns: off.out_ns,
                blocked_ns: woken.saturating_sub(off.out_ns),
                waited_ns: now_ns.saturating_sub(woken),
                pid: off.pid,
                tid,
                key: off.key,
            }
        });
        times.collect()
    }

    /// What is told of nowhere else. `counters`: those of the programs.
    pub fn unmeasured(&self, counters: &PerCpuArray<MapData, u64>) -> Unmeasured {
        let counter = |index| sum(counters, index);
        let paces = self.paces.get(&0, 0);
        Unmeasured {
            short: counter(OFF_SHORT),
            short_ns: counter(OFF_SHORT_NS),
            lost: counter(OFF_LOST),
            lost_ns: counter(OFF_LOST_NS),
            rest_ns: paces.iter().flat_map(|paces| paces.iter()).flat_map(|pace| pace.sums).sum(),
        }
    }
}
