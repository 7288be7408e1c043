//! Stacks of samples: from what a source delivers to frames of the profile, and the reason where they end.
//!
//! Each kind of source has its file, and appends to a `StackBuilder`: `record` (with `copied`, registers and a copy of the stack, or `callchain`),
//! `walked` (walked in the kernel), `stopped` (memory of a process). What they need of the mapped code has an owner each: `frames` (the frames of
//! addresses), `script` (those of interpreted programs), `loops` (native frames that run them).
//! Not here: whose stack it is, what was mapped, what the sample counts.

mod builder;
mod callchain;
mod copied;
mod copy;
mod deferred;
mod draft;
mod frames;
mod intern;
mod kernel;
mod live;
mod loops;
mod names;
mod on_stack;
pub(crate) mod record;
mod returns;
mod run;
mod script;
mod stitch;
pub(crate) mod stopped;
mod thread;
pub(crate) mod walked;

pub(crate) use builder::{StackBuilder, Stacks};
pub(crate) use deferred::DeferredStacks;
pub(crate) use draft::Ending;
pub(crate) use kernel::cookie;
pub(crate) use record::registers;
pub use stopped::StoppedStack;
pub(crate) use thread::ThreadStacks;
