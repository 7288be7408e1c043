//! Stacks of samples: from what a source delivers to frames of the profile, and the reason where they end.
//!
//! Each kind of source has its file: `copied` (registers and a copy of the stack), `walked` (walked in the kernel), `stopped` (memory of
//! a process). Not here: whose stack it is, what was mapped, what the sample counts.

mod builder;
mod copied;
mod deferred;
mod draft;
mod intern;
mod kernel;
mod live;
mod names;
mod returns;
mod run;
mod script;
mod stitch;
mod stopped;
mod thread;
mod walked;

pub(crate) use builder::{StackBuilder, Stacks};
pub(crate) use copied::registers;
pub(crate) use deferred::DeferredStacks;
pub(crate) use draft::Ending;
pub(crate) use kernel::cookie;
pub use stopped::StoppedStack;
pub(crate) use thread::ThreadStacks;
