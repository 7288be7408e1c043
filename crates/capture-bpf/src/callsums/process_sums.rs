//! System calls of each process, summed up permanently (bpf/processsums.h): their number and CPU time.
//!
//! Invariant: a sum is exact, and is kept until it is removed, even after its process has ended. Memory is allocated at the start; calls
//! for which there was no space are counted. Every process is included, this one too.
//!
//! The run time of BPF programs ([`RunStats`](crate::RunStats)) only includes the one at context switches: the cost at system calls is measured
//! here ([`CallOverhead::own_ns`]), including the kernel's path to the programs.
//!
//! Elsewhere: mapping processes to services, when sums are removed, the meaning of call numbers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use plumb_syscalls::{Abi, CallOverhead, number};

use super::overhead::{ROUNDS, null_call_ns, round_ns};
use super::wire::{
    CALL_FORKS, MAX_PROCESS_SUMS, PER_PROCESS_ALONE, ProcessCall, ProcessSum, SUM_LOST, SUM_OTHERS,
};
use super::{AGAIN, FORKS, OBJECT, STRUCTURES};
use crate::follow::Followed;
use crate::object::{Machine, Watch, sum, take, take_descriptor};
use crate::refusal::{LoadError, refused};
use crate::sys;

/// The programs at system calls.
const AT_CALLS: [Watch; 2] =
    [("on_time", "sys_exit", "btf_trace_sys_exit"), ("on_enter", "sys_enter", "btf_trace_sys_enter")];
/// The program that tracks when a thread is off the CPU.
const AT_SWITCH: Watch = ("on_switch", "sched_switch", "btf_trace_sched_switch");
/// Maps for other ways to sum up.
const UNUSED: [&str; 4] = ["sums", "sums_apart", "errors", "names"];
/// Sums that are read at once.
const BATCH: usize = 4096;

// SAFETY: structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::ProcessCall {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::ProcessSum {}
}

/// The programs, which count from the start. Dropping this ends them.
pub struct ProcessSums {
    sums: OwnedFd,
    counters: PerCpuArray<MapData, u64>,
    overhead: CallOverhead,
    keys: Vec<ProcessCall>,
    values: Vec<ProcessSum>,
    /// Keep the programs attached, and the one whose run time is accounted.
    _links: Vec<OwnedFd>,
    _accounted: OwnedFd,
}

impl ProcessSums {
    /// Number of sums that suffices for most machines.
    pub const ROOM: u32 = MAX_PROCESS_SUMS;

    /// Loads the programs, starts them, and measures their cost. There is space for `room` sums of some 100 bytes each: a process needs
    /// one for each kind of call that it ever makes, a few dozen.
    ///
    /// # Errors
    /// This machine or user can't load them, or the kernel rejects one.
    pub fn load(room: u32) -> Result<Self, LoadError> {
        let machine = Machine::find(&STRUCTURES, AT_CALLS.iter().chain([&AT_SWITCH]))?;
        let bare_ns = null_call_ns();
        let sigreturn = number(Abi::NATIVE, "rt_sigreturn").unwrap_or(SUM_OTHERS);
        let mut loader = machine.loader();
        loader
            .override_global("per", &PER_PROCESS_ALONE, true)
            .override_global("sigreturn", &sigreturn, true)
            .map_max_entries("process_sums", room)
            .allow_unsupported_maps();
        for name in UNUSED {
            loader.map_max_entries(name, 1);
        }
        let mut bpf = loader.load(OBJECT).map_err(refused("maps"))?;
        let mut links = Vec::new();
        let accounted = attached(&machine, &mut bpf, AT_SWITCH, &mut links)?;
        for watch in AT_CALLS.iter().chain(machine.again(&AGAIN)) {
            attached(&machine, &mut bpf, *watch, &mut links)?;
        }
        know_forks(&mut bpf)?;
        let mut followed = Followed::take(&machine, &mut bpf)?;
        let counters = take(&mut bpf, "counters")?;
        let mut loaded = Self {
            sums: take_descriptor(&mut bpf, "process_sums")?,
            counters,
            overhead: CallOverhead { bare_ns, followed_ns: f64::INFINITY, ..CallOverhead::default() },
            keys: vec![ProcessCall::default(); BATCH],
            values: vec![ProcessSum::default(); BATCH],
            _links: links,
            _accounted: accounted,
        };
        followed.begin().map_err(refused("to begin"))?;
        loaded.measure().map_err(refused("to measure what it costs"))?;
        Ok(loaded)
    }

    /// Passes all sums to `each`. Sums that are changing are read at their current value.
    ///
    /// # Errors
    /// The system call fails.
    pub fn read(&mut self, mut each: impl FnMut(ProcessCall, ProcessSum)) -> io::Result<()> {
        let mut position = None;
        loop {
            let (keys, values) = (&mut self.keys, &mut self.values);
            let (read, more) = sys::look(self.sums.as_fd(), &mut position, keys, values)?;
            keys.iter().zip(values).take(read).for_each(|(&key, &mut value)| each(key, value));
            if !more {
                return Ok(());
            }
        }
    }

    /// Removes sums; they must belong to ended processes.
    ///
    /// # Errors
    /// The system call fails.
    pub fn forget(&mut self, ended: &[ProcessCall]) -> io::Result<()> {
        sys::delete_all(self.sums.as_fd(), ended)
    }

    /// Number of calls so far that are in no sum for lack of space.
    pub fn lost(&self) -> u64 {
        sum(&self.counters, SUM_LOST)
    }

    /// The cost, measured on an undisturbed thread of this process.
    pub fn overhead(&self) -> CallOverhead {
        self.overhead
    }

    /// Measures the cost again, in some milliseconds. The lowest value is kept: others were disturbed, or the kernel accounted programs' run time.
    ///
    /// # Errors
    /// The kernel can't start a thread, or the sums can't be read.
    pub fn measure(&mut self) -> io::Result<()> {
        let mut before = self.null_calls()?;
        for _ in 0..ROUNDS {
            let round = std::thread::Builder::new().spawn(round_ns)?.join();
            let round = round.map_err(|_| io::Error::other("a thread that measures ended"))?;
            let after = self.null_calls()?;
            let calls = after.calls.saturating_sub(before.calls);
            let seen = after.cpu_ns.saturating_sub(before.cpu_ns) as f64 / calls as f64;
            if calls > 0 {
                let overhead = &mut self.overhead;
                overhead.followed_ns = overhead.followed_ns.min(round);
                overhead.attached_ns = overhead.followed_ns;
                overhead.measured_ns = Some(overhead.measured_ns.map_or(seen, |least| least.min(seen)));
            }
            before = after;
        }
        Ok(())
    }

    /// The sum of this process' calls that do nothing.
    fn null_calls(&mut self) -> io::Result<ProcessSum> {
        let (own, getppid) = (std::process::id(), number(Abi::NATIVE, "getppid"));
        let mut all = ProcessSum::default();
        self.read(|key, sum| {
            if key.pid == own && Some(key.number) == getppid {
                all.calls += sum.calls;
                all.cpu_ns += sum.cpu_ns;
            }
        })?;
        Ok(all)
    }
}

/// Loads and starts a program, and returns it: its run time is accounted only while the descriptor is open.
fn attached(
    machine: &Machine,
    bpf: &mut Ebpf,
    watch: Watch,
    links: &mut Vec<OwnedFd>,
) -> Result<OwnedFd, LoadError> {
    let (name, event, _) = watch;
    let program = machine.load_watch(bpf, watch)?.fd().map_err(refused(name))?;
    let program = program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?;
    links.push(sys::attach(program.as_fd()).map_err(refused(format!("the program {name} at {event}")))?);
    Ok(program)
}

/// Marks the calls that return in the child too.
fn know_forks(bpf: &mut Ebpf) -> Result<(), LoadError> {
    let mut known: Array<MapData, u32> = take(bpf, "known")?;
    let mut forks = FORKS.iter().filter_map(|name| number(Abi::NATIVE, name));
    forks.try_for_each(|call| known.set(call, CALL_FORKS, 0)).map_err(refused("what is known of calls"))
}
