//! How much processor time the target used, as the kernel accounted it.

use std::collections::HashMap;

use crate::procfs;
use crate::sys::usage::CpuTime;

/// An account of the target's processor time that was opened when the recording began.
#[derive(Debug)]
pub(crate) enum Account {
    /// The target's cgroup keeps it.
    Cgroup,
    /// A command: what it and the descendants that it waited for used. Complete once it has ended.
    Command(u32),
    /// Running processes: what they had used when the recording began, and what was last seen.
    Processes(HashMap<u32, (CpuTime, CpuTime)>),
    /// The whole machine: what it had used when the recording began.
    Machine(Option<CpuTime>),
}

impl Account {
    /// Opens the account of running processes and all their descendants.
    pub fn of_processes(pids: &[u32]) -> Self {
        let now = procfs::tree(pids).into_iter().filter_map(|pid| Some((pid, with_waited(pid)?)));
        Account::Processes(now.map(|(pid, time)| (pid, (time, time))).collect())
    }

    /// Opens the account of the machine.
    pub fn of_machine() -> Self {
        Account::Machine(procfs::machine_cpu_time())
    }

    /// Looks again, so that the time of a process that ends before the recording isn't missed but for the last bit.
    pub fn look(&mut self) {
        if let Account::Processes(times) = self {
            for (&pid, (_, last)) in times.iter_mut() {
                if let Some(now) = with_waited(pid) {
                    *last = now;
                }
            }
        }
    }

    /// What was used since the account was opened, where /proc keeps it.
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
            Account::Processes(times) => {
                let mut sum = CpuTime::default();
                for (before, last) in times.values() {
                    sum += last.since(*before);
                }
                Some(sum)
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
