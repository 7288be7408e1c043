//! Addresses of the states of a process's threads.

use std::collections::HashMap;

/// Addresses of the states of a process's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Threads {
    /// State of each thread, by its thread pointer (the address of its control block).
    ByPointer(HashMap<u64, u64>),
    /// Only the main thread has a state.
    Main(u64),
}

impl Threads {
    /// State of the thread with this thread pointer, or `None` if the interpreter does not know the thread. `is_main`: its thread id equals the
    /// process id.
    pub fn state(&self, pointer: u64, is_main: bool) -> Option<u64> {
        match self {
            Threads::ByPointer(states) => states.get(&pointer).copied(),
            Threads::Main(state) => is_main.then_some(*state),
        }
    }
}
