//! Finds processes that move into a cgroup while it is watched, such as a service restarted by its manager. A process that forks in it
//! has its parent in it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::Cgroup;

/// Shortest interval between listings: listing a cgroup's processes takes the kernel some microseconds for each.
const APART: Duration = Duration::from_millis(200);

/// The processes that were in the cgroup at the last look.
#[derive(Debug, Default)]
pub struct Joiners {
    known: HashSet<u32>,
    looked: Option<Instant>,
}

impl Joiners {
    /// Returns the processes that have entered since the last look; at first all of them. Returns none if the last look was a moment ago.
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
