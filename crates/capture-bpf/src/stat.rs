//! Counts for a command, from programs that only count (bpf/stat.bpf.c).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{HashMap, MapData, PerCpuArray};
use plumb_capture_api::{KernelCounts, StatCounters, ThreadTime};

use crate::follow::Followed;
use crate::object::{Machine, Watch, load_program, sum, take};
use crate::refusal::{LoadError, refused};
use crate::wire::{self, STAT_CALLS, STAT_KERNEL, STAT_LOST, STAT_LOST_NS, STAT_USER, ThreadKey};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = crate::object::object!("stat");
/// The programs with negligible cost.
const WATCHES: [Watch; 2] = [
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_free", "sched_process_free", "btf_trace_sched_process_free"),
];
/// The program that slows every system call.
const CALLS: Watch = ("on_call", "sys_exit", "btf_trace_sys_exit");

// SAFETY: structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::ThreadKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::wire::ThreadTime {}
}

/// The loaded programs. Dropping this ends them.
pub struct Stat {
    // Keeps programs and links.
    _bpf: Ebpf,
    program: OwnedFd,
    threads: HashMap<MapData, ThreadKey, wire::ThreadTime>,
    counters: PerCpuArray<MapData, u64>,
    followed: Followed,
    counts_calls: bool,
    before: [u64; 5],
}

impl Stat {
    /// Loads the programs and starts them; they count once a process is followed. `calls`: whether system calls are counted.
    pub fn load(calls: bool) -> Result<Self, LoadError> {
        let watches = || WATCHES.into_iter().chain(calls.then_some(CALLS));
        let named: Vec<Watch> = watches().collect();
        let machine = Machine::find(&["task_struct", "sched_entity"], &named)?;
        let mut bpf = machine.loader().allow_unsupported_maps().load(OBJECT).map_err(refused("maps"))?;
        let program = load_program(&mut bpf, "on_tick")?;
        for watch in watches() {
            machine.watch(&mut bpf, watch)?;
        }
        let followed = Followed::take(&machine, &mut bpf)?;
        Ok(Self {
            program,
            threads: take(&mut bpf, "threads")?,
            counters: take(&mut bpf, "counters")?,
            followed,
            counts_calls: calls,
            before: [0; 5],
            _bpf: bpf,
        })
    }

    fn counters(&self) -> [u64; 5] {
        [STAT_CALLS, STAT_USER, STAT_KERNEL, STAT_LOST, STAT_LOST_NS].map(|index| sum(&self.counters, index))
    }
}

impl StatCounters for Stat {
    fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)?;
        self.followed.begin()
    }

    fn runtime_ns(&self) -> u64 {
        self.threads.iter().filter_map(Result::ok).map(|(_, time)| time.runtime_ns).sum()
    }

    fn take(&mut self) -> KernelCounts {
        let now = self.counters();
        let since = std::mem::replace(&mut self.before, now);
        let [calls, user, kernel, lost, lost_ns] =
            std::array::from_fn(|index| now[index].saturating_sub(since[index]));
        let ended: Vec<_> = self.threads.iter().filter_map(Result::ok).collect();
        let threads = ended.into_iter().map(|(key, time)| {
            // If it stays, the next run includes it: possible only if the map itself is gone.
            let _ = self.threads.remove(&key);
            let length = key.comm.iter().position(|&byte| byte == 0).unwrap_or(key.comm.len());
            let comm = String::from_utf8_lossy(&key.comm[..length]).into_owned();
            ThreadTime { comm, tid: key.tid, threads: time.threads, runtime_ns: time.runtime_ns }
        });
        let threads = threads.collect();
        KernelCounts {
            calls: self.counts_calls.then_some(calls),
            user,
            kernel,
            threads,
            untold: (lost, lost_ns),
        }
    }
}
