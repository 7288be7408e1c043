//! Threads, children and CPU time of running processes, from /proc (proc(5)).
//!
//! Processes come and go during the reads: those that are gone are left out. Elsewhere: mappings and names.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::pid::{fields_of_stat, find_living_thread};
use crate::thread::state;
use crate::usage::{CpuTime, ticks_per_second};

/// Whether a process with this id exists.
pub fn exists(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}/stat")).exists()
}

/// Whether a process is running, even without its main thread, and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    find_living_thread(pid).is_some()
}

/// Returns the live threads of these processes and of all their descendants.
pub fn tree_threads(pids: &[u32]) -> Vec<u32> {
    tree(pids).into_iter().flat_map(threads).collect()
}

/// Returns these processes and all their live descendants.
pub fn tree(pids: &[u32]) -> Vec<u32> {
    let mut seen: HashSet<u32> = pids.iter().copied().collect();
    let mut all: Vec<u32> = pids.to_vec();
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let children = threads(pid).into_iter().flat_map(|tid| children(pid, tid));
        all.extend(children.filter(|&child| seen.insert(child)));
    }
    all
}

fn threads(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(pid: u32, tid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Returns the CPU time of a process so far: its own, and that of the children it has waited for.
pub fn cpu_time(pid: u32) -> Option<(CpuTime, CpuTime)> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?, ticks_per_second())
}

/// Parses utime, stime, cutime and cstime (fields 14 to 17).
fn parse_stat(stat: &[u8], ticks: u64) -> Option<(CpuTime, CpuTime)> {
    let mut fields = fields_of_stat(stat)?.skip(11).map(|field| field.parse::<u64>().ok());
    let mut next = || Some(of_ticks(fields.next()??, ticks));
    let own = CpuTime { user: next()?, system: next()? };
    let children = CpuTime { user: next()?, system: next()? };
    Some((own, children))
}

/// A thread's times so far, as accounted by the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// CPU time in nanoseconds.
    pub ran_ns: u64,
    /// Run-queue wait in nanoseconds.
    pub waited_ns: u64,
}

/// Returns the times of a thread. `None`: it is gone, has never run, or the kernel does not account them.
pub fn run_times(pid: u32, tid: u32) -> Option<RunTimes> {
    parse_schedstat(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?)
}

/// Whether a thread is running or runnable.
pub fn is_runnable(pid: u32, tid: u32) -> bool {
    state(pid, tid) == Some('R')
}

/// Parses CPU time, run-queue wait, and the number of times it was scheduled
/// (Documentation/scheduler/sched-stats.rst), which is 0 if the kernel does not account.
fn parse_schedstat(text: &str) -> Option<RunTimes> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    let times = RunTimes { ran_ns: fields.next()??, waited_ns: fields.next()?? };
    (fields.next()?? > 0_u64).then_some(times)
}

/// Time of all CPUs together that no thread ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineTimes {
    /// Time stolen by the hypervisor.
    pub stolen: Duration,
    /// Time in interrupts.
    pub interrupts: Duration,
}

impl MachineTimes {
    /// Returns the times since boot.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (fields, ticks) = (machine_fields(&stat), ticks_per_second());
        let [.., irq, softirq, steal] = fields.get(..8).unwrap_or(&[0; 8]) else { return Self::default() };
        Self { stolen: of_ticks(*steal, ticks), interrupts: of_ticks(irq + softirq, ticks) }
    }

    /// Returns the times since an earlier moment.
    pub fn since(self, before: Self) -> Self {
        Self {
            stolen: self.stolen.saturating_sub(before.stolen),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
        }
    }
}

/// Returns the CPU time of the whole machine so far, without idle time.
pub fn machine_cpu_time() -> Option<CpuTime> {
    parse_machine_stat(&fs::read_to_string("/proc/stat").ok()?, ticks_per_second())
}

/// Parses user, nice, system, irq and softirq of the line `cpu`: user nice system idle iowait irq softirq steal guest guest_nice.
fn parse_machine_stat(stat: &str, ticks: u64) -> Option<CpuTime> {
    let fields = machine_fields(stat);
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = fields[..] else { return None };
    Some(CpuTime { user: of_ticks(user + nice, ticks), system: of_ticks(system + irq + softirq, ticks) })
}

fn machine_fields(stat: &str) -> Vec<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    line.split_whitespace().map_while(|field| field.parse().ok()).collect()
}

fn of_ticks(count: u64, ticks: u64) -> Duration {
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / ticks.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 30 20 20 0 1 0 5 6 7";
        let (own, children) = parse_stat(stat.as_bytes(), 100).expect("all fields are there");
        assert_eq!((own.user.as_millis(), own.system.as_millis()), (1500, 500));
        assert_eq!((children.user.as_millis(), children.system.as_millis()), (300, 200));
        assert_eq!(parse_stat(b"42 (a) S 1", 100), None);
    }

    #[test]
    fn idle_time_is_not_used() {
        let stat = "cpu  100 10 50 9999 99 5 5 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let time = parse_machine_stat(stat, 100).expect("the line is there");
        assert_eq!((time.user.as_millis(), time.system.as_millis()), (1100, 600));
        assert_eq!(parse_machine_stat("intr 0\n", 100), None);
    }

    #[test]
    fn a_kernel_that_does_not_account_is_told_from_a_thread_that_never_waited() {
        let times = RunTimes { ran_ns: 428428888, waited_ns: 0 };
        assert_eq!(parse_schedstat("428428888 0 184\n"), Some(times));
        assert_eq!(parse_schedstat("0 0 0\n"), None);
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn this_test_is_in_its_own_tree() {
        let own = std::process::id();
        assert!(exists(own) && is_alive(own));
        assert!(tree(&[own]).contains(&own));
        assert!(tree_threads(&[own]).contains(&own));
    }
}
