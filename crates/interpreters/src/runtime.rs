//! Runtimes that make the code that a process runs: the process as their readers see it, and the unwinding rules for such code.
//!
//! Code without a file has no call-frame information. A runtime that needs to walk its own stacks describes each piece of its code in memory: a reader
//! that finds the piece of an address states the rule there ([`CallerRule`]), and the unwinder applies it.

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

/// A frame of code without a file, as an unwinder has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFrame {
    /// Program counter.
    pub pc: u64,
    /// Whether that is a return address.
    pub is_return: bool,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer, if it is known.
    pub fp: Option<u64>,
}

/// The rule for the caller of a frame. It says where values are; the unwinder reads them from the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerRule {
    /// Address of the return address.
    pub slot: u64,
    /// The caller's stack pointer.
    pub sp: StackPointer,
    /// The caller's frame pointer; `None`: it is the same.
    pub fp: Option<u64>,
}

/// The caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackPointer {
    /// The value.
    Is(u64),
    /// The address where it is.
    At(u64),
}

/// The answer of a runtime that is asked for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeRule {
    /// The code is not the runtime's, or keeps to conventions.
    None,
    /// The runtime's code is in a state without a rule. Conventions don't hold for it either.
    Unknown,
    /// The rule.
    Caller(CallerRule),
}
