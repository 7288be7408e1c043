//! CPU time that the target used, as accounted by the kernel.

use std::collections::HashMap;

use plumb_process::{procfs, usage::CpuTime};
use plumb_target::Target;

use crate::events::Attachment;

/// An account of the target's CPU time, opened at the start of the recording.
#[derive(Debug)]
pub(crate) enum Account {
    /// Kept by the target's cgroup.
    Cgroup,
    /// A command: its own time and that of descendants that it waited for. Complete once it has ended.
    Command(u32),
    /// Running processes.
    Processes(Processes),
    /// The whole machine: its CPU time at the start of the recording.
    Machine(Option<CpuTime>),
}

impl Account {
    /// Opens the account of a target with these process IDs.
    pub fn open(attachment: &Attachment, target: &Target, pids: &[u32]) -> Self {
        match (attachment, target) {
            (Attachment::Cgroup(_), _) => Account::Cgroup,
            (_, Target::Command(_)) => Account::Command(pids.first().copied().unwrap_or(0)),
            (_, Target::Processes(_)) => Account::Processes(Processes::open(pids)),
            (_, Target::Tree(root)) => Account::Processes(Processes::open(&[*root])),
            // The processes start during the recording.
            (_, Target::Awaited(_)) => Account::Processes(Processes::default()),
            (_, Target::Cgroup(_)) => Account::Cgroup,
            (_, Target::Machine) => Account::Machine(procfs::machine_cpu_time()),
        }
    }

    /// Adds a process of the target that has just started.
    pub fn add(&mut self, pid: u32) {
        if let Account::Processes(processes) = self {
            processes.roots.push(pid);
            processes.known.insert(pid, Known { before: CpuTime::default(), last: with_waited(pid) });
        }
    }

    /// Reads all times, so that of a process which ends before the recording only the last part is missed.
    pub fn look(&mut self) {
        if let Account::Processes(processes) = self {
            processes.look(&with_waited);
        }
    }

    /// CPU time since the account was opened; `None` if /proc does not keep it.
    pub fn used(&self) -> Option<CpuTime> {
        match self {
            Account::Cgroup => None,
            Account::Command(pid) => {
                let mut sum = CpuTime::default();
                for pid in procfs::tree(&[*pid]) {
                    if let Some(time) = with_waited(pid) {
                        sum += time;
                    }
                }
                Some(sum)
            }
            Account::Processes(processes) => {
                Some(processes.used(&procfs::tree(&processes.roots), &with_waited))
            }
            Account::Machine(before) => Some(procfs::machine_cpu_time()?.since((*before)?)),
        }
    }
}

/// The time of a process and of the children that it has waited for.
fn with_waited(pid: u32) -> Option<CpuTime> {
    let (mut time, children) = procfs::cpu_time(pid)?;
    time += children;
    Some(time)
}

/// The account of a process tree. Each time includes that of children which the process has waited for.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    roots: Vec<u32>,
    /// Processes that ran at the start of the recording.
    known: HashMap<u32, Known>,
}

#[derive(Debug)]
struct Known {
    /// CPU time at the start of the recording.
    before: CpuTime,
    /// CPU time when last read; `None`: the process has ended, and its parent has inherited its account.
    last: Option<CpuTime>,
}

impl Processes {
    fn open(roots: &[u32]) -> Self {
        let times = procfs::tree(roots).into_iter().filter_map(|pid| Some((pid, with_waited(pid)?)));
        let known = times.map(|(pid, time)| (pid, Known { before: time, last: Some(time) })).collect();
        Self { roots: roots.to_vec(), known }
    }

    fn look(&mut self, time_of: &dyn Fn(u32) -> Option<CpuTime>) {
        // Once a root has ended, no observed process inherits its time: the last reading is used.
        let inherited = self.roots.iter().all(|&root| time_of(root).is_some());
        for (pid, known) in &mut self.known {
            match time_of(*pid) {
                Some(now) => known.last = Some(now),
                None if inherited => known.last = None,
                None => {}
            }
        }
    }

    /// `living`: the processes currently in the tree.
    fn used(&self, living: &[u32], time_of: &dyn Fn(u32) -> Option<CpuTime>) -> CpuTime {
        let (mut sum, mut before) = (CpuTime::default(), CpuTime::default());
        for known in self.known.values() {
            sum += known.last.unwrap_or_default();
            before += known.before;
        }
        for &pid in living.iter().filter(|pid| !self.known.contains_key(pid)) {
            sum += time_of(pid).unwrap_or_default();
        }
        sum.since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seconds(user: u64) -> CpuTime {
        CpuTime { user: Duration::from_secs(user), system: Duration::ZERO }
    }

    fn two() -> Processes {
        let known = |time| Known { before: seconds(time), last: Some(seconds(time)) };
        Processes { roots: vec![1], known: [(1, known(10)), (2, known(100))].into() }
    }

    #[test]
    fn a_child_that_is_waited_for_is_counted_once() {
        let mut processes = two();
        // Child 2 used 3 s more and ended; its parent 1 used 2 s more and inherited all of it.
        let now = |pid| (pid == 1).then(|| seconds(10 + 2 + 103));
        processes.look(&now);
        assert_eq!(processes.used(&[1], &now), seconds(5));
    }

    #[test]
    fn new_children_count_whether_they_live_or_not() {
        let mut processes = two();
        // 3 was forked since and is alive; another process used 1 s and was waited for by 1.
        let now = |pid| Some(seconds([0, 11, 104, 7][pid as usize]));
        processes.look(&now);
        assert_eq!(processes.used(&[1, 2, 3], &now), seconds(1 + 4 + 7));
    }

    #[test]
    fn what_a_root_used_stays_known_after_its_end() {
        let mut processes = two();
        processes.look(&|pid| Some(seconds([0, 15, 100][pid as usize])));
        processes.look(&|_| None);
        assert_eq!(processes.used(&[], &|_| None), seconds(5));
    }
}
