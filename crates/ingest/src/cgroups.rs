//! The control groups in which processes ended, by process: this can't be looked up afterwards.
//!
//! Invariant: at most [`MOST`] processes are kept. Elsewhere: groups of running processes, which are read from `/proc/PID/cgroup`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

/// Most processes that are kept: as many as start in fifteen seconds of a fork storm.
const MOST: usize = 50_000;

/// Paths of control groups below the root of their hierarchy, by process id.
#[derive(Debug, Default)]
pub struct EndedCgroups {
    by_pid: FxHashMap<u32, Arc<str>>,
    /// Each path once.
    paths: FxHashSet<Arc<str>>,
}

impl EndedCgroups {
    /// Notes that a process has ended in a group.
    pub fn add(&mut self, pid: u32, path: String) {
        if self.by_pid.len() >= MOST {
            return;
        }
        let path = match self.paths.get(path.as_str()) {
            Some(path) => path.clone(),
            None => Arc::from(path),
        };
        self.paths.insert(path.clone());
        self.by_pid.insert(pid, path);
    }

    /// The group in which the last process with this ID ended, if known.
    pub fn get(&self, pid: u32) -> Option<&str> {
        self.by_pid.get(&pid).map(|path| &**path)
    }
}
