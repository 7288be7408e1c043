//! The control groups in which processes ended, by process: nobody can ask for that afterwards.
//!
//! Invariant: there are no more than [`MOST`], whatever ends. Not here: groups of processes that run, which `/proc/PID/cgroup` tells.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

/// Most processes that are remembered: as many as start in fifteen seconds of a storm.
const MOST: usize = 50_000;

/// Paths of control groups below the root of their hierarchy, by process id.
#[derive(Debug, Default)]
pub struct EndedCgroups {
    by_pid: FxHashMap<u32, Arc<str>>,
    /// Each once.
    paths: FxHashSet<Arc<str>>,
}

impl EndedCgroups {
    /// A process has ended in a group.
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

    /// The group in which the last process with this id ended, if that is known.
    pub fn get(&self, pid: u32) -> Option<&str> {
        self.by_pid.get(&pid).map(|path| &**path)
    }
}
