//! Where the states of a process' threads are.

use std::collections::HashMap;

/// Where the states of a process' threads are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Of each by its thread pointer, which is where its control block is.
    ByPointer(HashMap<u64, u64>),
    /// Only the main thread has one.
    Main(u64),
}

impl Threads {
    /// The state of the thread with this pointer; `is_main`: its number is that of the process. `None`: the interpreter doesn't know it.
    pub fn state(&self, pointer: u64, is_main: bool) -> Option<u64> {
        match self {
            Threads::ByPointer(states) => states.get(&pointer).copied(),
            Threads::Main(state) => is_main.then_some(*state),
        }
    }
}
