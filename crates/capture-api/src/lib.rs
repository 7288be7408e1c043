//! What a source of samples and what stands beside it look like to each other: what walks stacks in the kernel, what measures time
//! off the processor, what watches or counts the target.
//!
//! Traits, and what goes through them. Invariant: nothing here opens, reads or decides anything, so that a recorder and what helps
//! it need not know each other.

mod assistant;
mod beside;
mod lent;
mod messages;
mod off_cpu;
mod pace;
mod watcher;

pub use assistant::{Assistant, Copiers, HandedOver, Passed, Watched};
pub use beside::Beside;
pub use lent::{CodeSegment, Lent};
pub use messages::{
    Counted, Message, Messages, NEAR_NS, Parts, Round, Script, ScriptPlace, WITHOUT_STACK, WalkedSample,
};
pub use off_cpu::{OffCpu, OffThread, OffUser, TimeOff, Unmeasured};
pub use pace::Pace;
pub use plumb_interpreters::{CodeId, Root, python};
pub use watcher::{KernelCounts, ThreadTime, Watcher};
