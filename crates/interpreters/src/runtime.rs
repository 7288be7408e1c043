//! Runtimes that make the code that a process runs: the process as their readers see it, and the unwinding rules for such code.
//!
//! Code without a file has no call-frame information. A runtime that needs to walk its own stacks describes each piece of its code in memory: a reader
//! that finds the piece of an address states the rule there ([`RuntimeRule`](plumb_unwind::RuntimeRule)), and the unwinder applies it.

use std::any::Any;
use std::fmt;

use crate::Memory;

/// A process with a runtime.
pub struct RuntimeProcess<'p> {
    /// Memory of the process. Stacks in it may be older than the rest.
    pub memory: &'p dyn Memory,
    /// Difference (wrapping) between addresses in the process and those that the runtime's file states.
    pub bias: u64,
    /// State of the reader for this process.
    pub state: &'p mut RuntimeState,
}

/// State that a reader keeps of one process. Only the reader knows the contents.
#[derive(Default)]
pub struct RuntimeState(Option<Box<dyn Any>>);

impl RuntimeState {
    /// The contents, which are made at the first call.
    pub(crate) fn get_or_insert<T: Any + Default>(&mut self) -> &mut T {
        let is_its_own = self.0.as_ref().is_some_and(|known| known.is::<T>());
        if !is_its_own {
            self.0 = Some(Box::<T>::default());
        }
        let known = self.0.as_mut().and_then(|known| known.downcast_mut());
        known.expect("it is of this type")
    }
}

impl fmt::Debug for RuntimeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "RuntimeState(known)" } else { "RuntimeState(empty)" })
    }
}
