//! Addresses of the states of a process's threads.

use std::collections::BTreeMap;
use std::ops::Range;

/// Distances in bytes at which a thread's descriptor may begin before where its thread pointer leads. On x86_64 they are the same place. On aarch64 the descriptor
/// ends there, and has a length that the C library does not say: 1,792 to 1,856 in glibc 2.31 to 2.41.
const DISTANCES: Range<u64> = 0..if cfg!(target_arch = "aarch64") { 3073 } else { 1 };

/// Addresses of the states of a process's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Threads {
    /// State of each thread, by the address of its descriptor (what `pthread_self` returns in it).
    ByDescriptor(BTreeMap<u64, u64>),
    /// Only the main thread has a state.
    Main(u64),
}

impl Threads {
    /// State of the thread with this thread pointer, or `None` if the interpreter does not know the thread. `is_main`: its thread id equals the
    /// process id.
    pub fn state(&self, pointer: u64, is_main: bool) -> Option<u64> {
        match self {
            Threads::ByDescriptor(states) => {
                let (descriptor, state) = states.range(..=pointer).next_back()?;
                DISTANCES.contains(&(pointer - descriptor)).then_some(*state)
            }
            Threads::Main(state) => is_main.then_some(*state),
        }
    }
}
