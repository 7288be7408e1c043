//! Who comes into a cgroup while it is watched: by moving there, as a service does that its manager starts again. What forks in it has a parent in it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::Cgroup;

/// Listing the processes of a cgroup takes the kernel some microseconds each.
const APART: Duration = Duration::from_millis(200);

/// The processes that were in it at the last look.
#[derive(Debug, Default)]
pub struct Joiners {
    known: HashSet<u32>,
    looked: Option<Instant>,
}

impl Joiners {
    /// Those that are in it and weren't at the last look; the first time all. Nobody, if that was a moment ago.
    pub fn look(&mut self, cgroup: &Cgroup) -> Vec<u32> {
        if self.looked.is_some_and(|looked| looked.elapsed() < APART) {
            return Vec::new();
        }
        self.looked = Some(Instant::now());
        let pids: HashSet<u32> = cgroup.pids().into_iter().collect();
        let joined = pids.difference(&self.known).copied().collect();
        self.known = pids;
        joined
    }
}
