//! Single system calls of followed threads, from programs at the tracepoints of their beginning and end.
//!
//! Filters work in the kernel. What is seen, kept by filters and dropped for want of room is counted there, each call once, so
//! that nothing is lost in silence. Loading this slows every system call on the machine a little, whoever is followed.
//!
//! Not here: what arguments mean (syscalls), who is followed.

mod message;
pub mod wire;

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::Iter;
use plumb_capture_api::TargetObserver;
use plumb_syscalls::{Abi, At, Count, SystemCall, Take, What, number};

use crate::callsums::null_call_ns;
use crate::follow::Followed;
use crate::object::{Machine, Watch, sum, take};
use crate::refusal::{LoadError, refused};
use crate::switch::{Probes, Switch};
use wire::{
    CALLS_DROPPED, CALLS_KEPT, CALLS_MET, CALLS_NO_MEMORY, CALLS_SEEN, CALLS_UNTRACKED, COUNT_AT,
    COUNT_FIELD, COUNT_ONE, COUNT_RESULT, FOLLOW_FROM_EXEC, HOW_BYTES, HOW_LIST, HOW_STRING, NO_FIELD,
    NUMBERS, PIECE_BYTES, TAKES, WANT_IS_EXEC, WANT_IS_FORK, WANT_SHOW, WANT_TRACK, Wanted,
};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/trace.bpf.o");
/// The structures of the kernel that they look into.
const STRUCTURES: [&str; 3] = ["task_struct", "thread_info", "pt_regs"];
/// The programs.
const WATCHES: [Watch; 4] = [
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_enter", "sys_enter", "btf_trace_sys_enter"),
    ("on_exit", "sys_exit", "btf_trace_sys_exit"),
    ("on_end", "sched_process_exit", "btf_trace_sched_process_exit"),
];
/// Calls that begin another program, and those that return in the child too.
const EXECS: [&str; 2] = ["execve", "execveat"];
const FORKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// Calls by which it is found out how long a call that does nothing seems to take.
const CALIBRATION: usize = 500;
/// How often they are made. Of the real time the fastest round counts, as others may have run in between.
const ROUNDS: usize = 10;

// SAFETY: a structure of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Wanted {}
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct CallFilter {
    /// Only calls that take as long, in nanoseconds.
    pub min_ns: u64,
    /// Only calls that fail.
    pub failed_only: bool,
    /// System calls of everybody that the programs run for are counted ([`Calls::met`]).
    pub counts_met: bool,
    /// Bytes of the ring; a power of two of at least a page.
    pub ring_bytes: u32,
}

/// Whether calls of a number are sent, and with what memory.
#[derive(Clone, Debug, Default)]
pub struct Want {
    /// They are asked for.
    pub show: bool,
    /// They are sent whatever filters say, if they succeed.
    pub track: bool,
    /// Memory that is copied: no more than six pieces.
    pub takes: Vec<Take>,
}

/// How many calls there were of those that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// All.
    pub seen: u64,
    /// Those that filters kept.
    pub kept: u64,
    /// Those that found no room in the ring.
    pub dropped: u64,
    /// Calls that are not asked for but tell what descriptors are, likewise.
    pub untracked: u64,
    /// Those whose beginning could not be remembered: they are told as if they had begun before.
    pub no_memory: u64,
}

/// The loaded programs. Dropping this ends them.
pub struct Calls {
    bpf: Ebpf,
    ring: RingBuf<MapData>,
    wanted: Array<MapData, Wanted>,
    counters: Arc<PerCpuArray<MapData, u64>>,
    probes: Arc<Mutex<Probes>>,
    followed: Followed,
    /// What a call that does nothing takes while nobody looks.
    bare_ns: f64,
    floor_ns: u64,
    each_ns: f64,
}

impl Calls {
    /// Loads the programs and starts them. Nothing is wanted and nobody followed at first.
    pub fn load(filter: CallFilter) -> Result<Self, LoadError> {
        let machine = Machine::find(&STRUCTURES, &WATCHES)?;
        let bare_ns = null_call_ns();
        let mut bpf = machine
            .loader()
            .override_global("min_ns", &filter.min_ns, true)
            .override_global("failed_only", &u32::from(filter.failed_only), true)
            .override_global("counts_met", &u32::from(filter.counts_met), true)
            .override_global("ring_bytes", &filter.ring_bytes, true)
            .override_global("own_pid", &std::process::id(), true)
            .map_max_entries("ring", filter.ring_bytes)
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(refused("maps"))?;
        let program =
            bpf.program_mut("on_ask").ok_or_else(|| refused("a program")(io::Error::other("none")))?;
        let program: &mut Iter = program.try_into().map_err(refused("a program"))?;
        program.load("task", &machine.btf).map_err(refused("a program"))?;
        let mut probes = Probes::default();
        for watch in WATCHES {
            // Forks are to be followed all the time.
            match watch.0 {
                "on_enter" | "on_exit" => machine.watch_by(&mut bpf, watch, &mut probes)?,
                _ => machine.watch(&mut bpf, watch)?,
            }
        }
        let followed = Followed::take(&machine, &mut bpf)?;
        let mut calls = Self {
            ring: take(&mut bpf, "ring")?,
            wanted: take(&mut bpf, "wanted")?,
            counters: Arc::new(take(&mut bpf, "counters")?),
            probes: Arc::new(Mutex::new(probes)),
            followed,
            bpf,
            bare_ns,
            floor_ns: 0,
            each_ns: 0.0,
        };
        calls.mark(&EXECS, WANT_IS_EXEC).map_err(refused("what is wanted"))?;
        calls.mark(&FORKS, WANT_IS_FORK).map_err(refused("what is wanted"))?;
        Ok(calls)
    }

    fn mark(&mut self, names: &[&str], what: u32) -> io::Result<()> {
        for abi in [Abi::X86_64, Abi::X86] {
            for number in names.iter().filter_map(|name| number(abi, name)) {
                self.change(abi, number, |wanted| wanted.what |= what)?;
            }
        }
        Ok(())
    }

    fn change(&mut self, abi: Abi, number: u32, change: impl FnOnce(&mut Wanted)) -> io::Result<()> {
        let index = number.min(NUMBERS - 1) + if abi == Abi::X86 { NUMBERS } else { 0 };
        let mut wanted = self.wanted.get(&index, 0).map_err(io::Error::other)?;
        change(&mut wanted);
        self.wanted.set(index, wanted, 0).map_err(io::Error::other)
    }

    /// Says what is wanted of the calls of a number; all above 510 count as one.
    pub fn want(&mut self, abi: Abi, number: u32, want: &Want) -> io::Result<()> {
        self.change(abi, number, |wanted| {
            wanted.what &= !(WANT_SHOW | WANT_TRACK);
            let bit = |is: bool, bit: u32| if is { bit } else { 0 };
            wanted.what |= bit(want.show, WANT_SHOW) | bit(want.track, WANT_TRACK);
            wanted.takes = 0;
            for (to, one) in wanted.take.iter_mut().zip(&want.takes).take(TAKES as usize) {
                *to = told(one);
                wanted.takes += 1;
            }
        })
    }

    /// Measures how much longer a call that does nothing seems to take than it does while nobody looks, and takes that off every latency
    /// from then on, as sums of calls do ([`Overhead::floor_ns`](crate::Overhead::floor_ns)). To be done before anything is wanted or followed.
    pub fn calibrate(&mut self) -> io::Result<()> {
        let Some(number) = number(Abi::X86_64, "getppid") else { return Ok(()) };
        let pidfd = plumb_process::pidfd(std::process::id())?;
        self.want(Abi::X86_64, number, &Want { track: true, ..Want::default() })?;
        self.followed.add(pidfd.as_fd())?;
        self.followed.begin()?;
        let round = |_| {
            let begin = Instant::now();
            for _ in 0..CALIBRATION {
                std::hint::black_box(std::os::unix::process::parent_id());
            }
            begin.elapsed().as_nanos() as f64 / CALIBRATION as f64
        };
        self.each_ns = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
        self.followed.reset()?;
        self.followed.forget(pidfd.as_fd())?;
        self.want(Abi::X86_64, number, &Want::default())?;
        let mut times = Vec::with_capacity(ROUNDS * CALIBRATION);
        self.take(|call| times.extend(call.latency_ns().filter(|_| call.number == number)));
        times.sort_unstable();
        let seen_ns = times.get(times.len() / 2).map_or(0.0, |&ns| ns as f64);
        self.floor_ns = (seen_ns - self.bare_ns).max(0.0) as u64;
        Ok(())
    }

    /// What is taken off each latency, in nanoseconds.
    pub fn floor_ns(&self) -> u64 {
        self.floor_ns
    }

    /// How long a call that does nothing really took while it was seen, in nanoseconds.
    pub fn each_ns(&self) -> f64 {
        self.each_ns
    }

    /// Becomes readable when there is much to be taken.
    pub fn wakes(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Keeps to processes that are followed: to none, until one is.
    pub fn only_followed(&mut self) -> io::Result<()> {
        self.followed.only_some()
    }

    /// Follows this process, by its pidfd, and what it forks from now on, and keeps to it and to others that are told.
    pub fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)
    }

    /// Likewise from its next exec on.
    pub fn follow_from_exec(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add_as(pid, FOLLOW_FROM_EXEC)
    }

    /// Follows a process no longer, by its pidfd; what it forked stays followed.
    pub fn forget(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.forget(pid)
    }

    /// Whether a process is one of those that are followed, by its pidfd.
    pub fn follows(&self, pid: BorrowedFd<'_>) -> bool {
        self.followed.has(pid)
    }

    /// From now on calls are seen: of those who are followed, or, if nobody was told, of everybody but this process.
    pub fn begin(&mut self) -> io::Result<()> {
        self.followed.begin()
    }

    /// What turns them off and on while they are read.
    pub fn switch(&self) -> Switch {
        Switch::new(self.followed.teller(), self.probes.clone(), (self.counters.clone(), CALLS_SEEN))
    }

    /// No call that begins from now on is seen.
    pub fn end(&mut self) -> io::Result<()> {
        self.followed.end()
    }

    /// Has the calls that have not ended sent, once: they are not told again when they end.
    pub fn ask_unfinished(&mut self) -> io::Result<()> {
        let program = self.bpf.program_mut("on_ask").ok_or(io::ErrorKind::NotFound)?;
        let program: &mut Iter = program.try_into().map_err(io::Error::other)?;
        let link = program.attach().map_err(io::Error::other)?;
        let link = program.take_link(link).map_err(io::Error::other)?;
        let mut file = link.into_file().map_err(io::Error::other)?;
        // Each thread is met as this is read; nothing is written.
        file.read_to_end(&mut Vec::new()).map(drop)
    }

    /// Takes the calls that are there, in the order of their ends.
    pub fn take(&mut self, mut each: impl FnMut(&SystemCall<'_>)) -> usize {
        let mut taken = 0;
        while let Some(item) = self.ring.next() {
            if let Some(mut call) = message::read(&item) {
                if !call.is_late {
                    call.end_ns = call.end_ns.saturating_sub(self.floor_ns).max(call.begin_ns);
                }
                each(&call);
            }
            taken += 1;
        }
        taken
    }

    /// System calls of everybody that began so far while the programs looked, if they are counted.
    pub fn met(&self) -> u64 {
        sum(&self.counters, CALLS_MET)
    }

    /// How many there were so far.
    pub fn counts(&self) -> CallCounts {
        let of = |index| sum(&self.counters, index);
        CallCounts {
            seen: of(CALLS_SEEN),
            kept: of(CALLS_KEPT),
            dropped: of(CALLS_DROPPED),
            untracked: of(CALLS_UNTRACKED),
            no_memory: of(CALLS_NO_MEMORY),
        }
    }
}

/// Beside a recording, whose stacks are then those of the calls.
impl TargetObserver for Calls {
    fn follow_all(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn only_followed(&mut self) -> io::Result<()> {
        Calls::only_followed(self)
    }

    fn follow(&mut self, pid: BorrowedFd<'_>, from_exec: bool) -> io::Result<()> {
        if from_exec { self.follow_from_exec(pid) } else { Calls::follow(self, pid) }
    }

    fn begin(&mut self) -> io::Result<()> {
        Calls::begin(self)
    }

    fn end(&mut self) -> io::Result<()> {
        Calls::end(self)
    }
}

/// A piece of memory, as the programs know it.
fn told(take: &Take) -> wire::Take {
    let (arg, field) = match take.at {
        At::Argument(arg) => (arg, NO_FIELD),
        At::Field { take, place } => (take, place),
    };
    let (how, size, count, most) = match take.what {
        What::String { most } => (HOW_STRING, 1, Count::One, most),
        What::List => (HOW_LIST, 1, Count::One, PIECE_BYTES as u16),
        What::Elements { size, count, most } => (HOW_BYTES, size, count, most),
    };
    let (count, count_field) = match count {
        Count::One => (COUNT_ONE, 0),
        Count::Argument(arg) => (arg, 0),
        Count::Behind(arg) => (COUNT_AT + arg, 0),
        Count::Result => (COUNT_RESULT, 0),
        Count::Field(place) => (COUNT_FIELD, place),
    };
    let most = most.min(PIECE_BYTES as u16);
    wire::Take { arg, how, at_end: take.at_end.into(), count, size, most, field, count_field }
}
