//! Single system calls of followed threads, from programs at the tracepoints of their start and end.
//!
//! Filters work in the kernel. Traced calls, those kept by filters, and those dropped for lack of space are counted there, each call once, so
//! that no loss is silent. Loading this slows every system call on the machine a little, followed or not.
//!
//! Elsewhere: the meaning of arguments (syscalls), the choice of followed processes.

mod message;
pub mod wire;

use std::io::{self, Read};
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::Iter;
use plumb_capture_api::TargetObserver;
use plumb_process::usage::monotonic_ns;
use plumb_syscalls::{Abi, At, Count, SystemCall, Take, What, number};

use crate::callsums::null_call_ns;
use crate::follow::Followed;
use crate::object::{Machine, Watch, sum, take};
use crate::refusal::{LoadError, refused};
use crate::switch::{Probes, Switch};
use crate::verified::verified;
use wire::{
    CALLS_DROPPED, CALLS_KEPT, CALLS_MET, CALLS_NO_MEMORY, CALLS_SEEN, CALLS_UNTRACKED, COUNT_AT,
    COUNT_FIELD, COUNT_ONE, COUNT_RESULT, FOLLOW_FROM_EXEC, HOW_BYTES, HOW_LIST, HOW_STRING, NO_FIELD,
    NUMBERS, PIECE_BYTES, TAKES, WANT_IS_EXEC, WANT_IS_FORK, WANT_SHOW, WANT_TRACK, Wanted,
};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = crate::object::object!("trace");
/// The kernel structures that they read.
const STRUCTURES: [&str; 3] = ["task_struct", "thread_info", "pt_regs"];
/// The programs.
const FORKS_AND_ENDS: [Watch; 2] = [
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_end", "sched_process_exit", "btf_trace_sched_process_exit"),
];
/// The programs that are detached while nothing is recorded.
const AT_CALLS: [Watch; 2] =
    [("on_enter", "sys_enter", "btf_trace_sys_enter"), ("on_exit", "sys_exit", "btf_trace_sys_exit")];
/// Programs that do what the first ones were skipped for, where the kernel preempts programs.
const AGAIN: [Watch; 2] = [
    ("on_enter_again", "sys_enter", "btf_trace_sys_enter"),
    ("on_exit_again", "sys_exit", "btf_trace_sys_exit"),
];
/// Calls that start another program; below, those that return in the child too.
const EXECS: [&str; 2] = ["execve", "execveat"];
const FORKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// Number of calls for measuring the apparent duration of a call that does nothing.
const CALIBRATION: usize = 500;
/// Number of measurements. For real time the fastest one counts, as others may have been interrupted.
const ROUNDS: usize = 10;

// SAFETY: a structure of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Wanted {}
}

/// Filter for the calls to send.
#[derive(Clone, Copy, Debug)]
pub struct CallFilter {
    /// Shortest duration of a call, in nanoseconds.
    pub min_ns: u64,
    /// Only calls that fail.
    pub failed_only: bool,
    /// Whether all system calls for which the programs run are counted ([`Calls::met`]).
    pub counts_met: bool,
    /// Bytes of the ring; a power of two of at least a page.
    pub ring_bytes: u32,
}

/// Whether calls with a number are sent, and the memory to copy.
#[derive(Clone, Debug, Default)]
pub struct Want {
    /// Whether they are selected.
    pub show: bool,
    /// Whether they are sent despite the filters, if they succeed.
    pub track: bool,
    /// Memory to copy: at most six pieces.
    pub takes: Vec<Take>,
}

/// Counts of the selected calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// All selected calls.
    pub seen: u64,
    /// Calls that the filters kept.
    pub kept: u64,
    /// Calls dropped because the ring was full.
    pub dropped: u64,
    /// Dropped calls that are not selected but affect descriptors.
    pub untracked: u64,
    /// Calls whose start could not be stored: they are reported as if they had started before the trace.
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
    /// Duration of a call that does nothing, without tracing.
    bare_ns: f64,
    floor_ns: u64,
    each_ns: f64,
}

impl Calls {
    /// Loads the programs and starts them. Initially no call is selected and no process followed.
    pub fn load(filter: CallFilter) -> Result<Self, LoadError> {
        let machine = Machine::find(&STRUCTURES, FORKS_AND_ENDS.iter().chain(&AT_CALLS))?;
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
        verified(|| program.load("task", &machine.btf)).map_err(refused("a program"))?;
        let mut probes = Probes::default();
        // Forks must be followed from the start.
        for watch in FORKS_AND_ENDS {
            machine.watch(&mut bpf, watch)?;
        }
        for watch in AT_CALLS.iter().chain(machine.again(&AGAIN)) {
            machine.watch_by(&mut bpf, *watch, &mut probes)?;
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
        for abi in [Abi::NATIVE, Abi::COMPAT] {
            for number in names.iter().filter_map(|name| number(abi, name)) {
                self.change(abi, number, |wanted| wanted.what |= what)?;
            }
        }
        Ok(())
    }

    fn change(&mut self, abi: Abi, number: u32, change: impl FnOnce(&mut Wanted)) -> io::Result<()> {
        let index = number.min(NUMBERS - 1) + if abi == Abi::COMPAT { NUMBERS } else { 0 };
        let mut wanted = self.wanted.get(&index, 0).map_err(io::Error::other)?;
        change(&mut wanted);
        self.wanted.set(index, wanted, 0).map_err(io::Error::other)
    }

    /// Sets the recording of calls with this number; all numbers above 510 count as one.
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

    /// Measures the tracing overhead in the apparent duration of a call that does nothing, and subtracts it from every latency
    /// from then on, as sums of calls do ([`CallOverhead::floor_ns`](plumb_syscalls::CallOverhead::floor_ns)). To be called before calls are selected or processes followed.
    pub fn calibrate(&mut self) -> io::Result<()> {
        let Some(number) = number(Abi::NATIVE, "getppid") else { return Ok(()) };
        let pidfd = plumb_process::pidfd(std::process::id())?;
        self.want(Abi::NATIVE, number, &Want { track: true, ..Want::default() })?;
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
        self.want(Abi::NATIVE, number, &Want::default())?;
        let mut times = Vec::with_capacity(ROUNDS * CALIBRATION);
        self.take(|call| times.extend(call.latency_ns().filter(|_| call.number == number)));
        times.sort_unstable();
        let seen_ns = times.get(times.len() / 2).map_or(0.0, |&ns| ns as f64);
        self.floor_ns = (seen_ns - self.bare_ns).max(0.0) as u64;
        Ok(())
    }

    /// The overhead subtracted from each latency, in nanoseconds.
    pub fn floor_ns(&self) -> u64 {
        self.floor_ns
    }

    /// Real duration of a traced call that does nothing, in nanoseconds.
    pub fn each_ns(&self) -> f64 {
        self.each_ns
    }

    /// Duration of a null system call, measured before the programs were attached.
    pub fn bare_ns(&self) -> f64 {
        self.bare_ns
    }

    /// A descriptor that becomes readable when there are many calls to take.
    pub fn wakes(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Restricts tracing to followed processes (initially none).
    pub fn only_followed(&mut self) -> io::Result<()> {
        self.followed.only_some()
    }

    /// Restricts tracing to followed processes, and adds this one, given by its pidfd, with its future children.
    pub fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)
    }

    /// As [`follow`](Self::follow), from the process' next exec on.
    pub fn follow_from_exec(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add_as(pid, FOLLOW_FROM_EXEC)
    }

    /// Stops following a process, given by its pidfd; its children stay followed.
    pub fn forget(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.forget(pid)
    }

    /// Whether a process, given by its pidfd, is followed.
    pub fn follows(&self, pid: BorrowedFd<'_>) -> bool {
        self.followed.has(pid)
    }

    /// Starts tracing: followed processes, or, if none was given, all but this process.
    pub fn begin(&mut self) -> io::Result<()> {
        self.followed.begin()
    }

    /// A switch that turns tracing off and on while the ring is read.
    pub fn switch(&self) -> Switch {
        Switch::new(self.followed.teller(), self.probes.clone(), (self.counters.clone(), CALLS_SEEN))
    }

    /// Stops tracing calls that start from now on.
    pub fn end(&mut self) -> io::Result<()> {
        self.followed.end()
    }

    /// Sends the calls that have not ended, once: they are not sent again when they end.
    pub fn ask_unfinished(&mut self) -> io::Result<()> {
        let program = self.bpf.program_mut("on_ask").ok_or(io::ErrorKind::NotFound)?;
        let program: &mut Iter = program.try_into().map_err(io::Error::other)?;
        let link = program.attach().map_err(io::Error::other)?;
        let link = program.take_link(link).map_err(io::Error::other)?;
        let mut file = link.into_file().map_err(io::Error::other)?;
        // Reading runs the program for each thread; it writes no output.
        file.read_to_end(&mut Vec::new()).map(drop)
    }

    /// Takes the calls that are waiting now, in order of their ends. Ends also where calls come faster than they are read.
    pub fn take(&mut self, mut each: impl FnMut(&SystemCall<'_>)) -> usize {
        let (mut taken, begin_ns, mut is_behind) = (0, monotonic_ns(), true);
        while is_behind && let Some(item) = self.ring.next() {
            if let Some(mut call) = message::read(&item) {
                is_behind = call.end_ns <= begin_ns;
                if !call.is_late {
                    call.end_ns = call.end_ns.saturating_sub(self.floor_ns).max(call.begin_ns);
                }
                each(&call);
            }
            taken += 1;
        }
        taken
    }

    /// Number of all system calls for which the programs have run, if counted.
    pub fn met(&self) -> u64 {
        sum(&self.counters, CALLS_MET)
    }

    /// The counts so far.
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

    /// Most starts and ends of calls, selected or not and of any process, that no program has seen: those that the kernel skipped each program at.
    pub fn skipped(&self) -> u64 {
        let skipped = self.probes.lock().unwrap_or_else(PoisonError::into_inner).skipped();
        let (first, again) = skipped.split_at(AT_CALLS.len().min(skipped.len()));
        let again = again.iter().copied().chain(iter::repeat(u64::MAX));
        first.iter().zip(again).map(|(&first, again)| first.min(again)).sum()
    }
}

/// Observes the target of a recording, whose stacks are then those of the calls.
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

/// A piece of memory in the programs' format.
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
