//! The options that several commands share: whom to observe, how to record, which part of a profile to look at.
//!
//! Invariant: an option has one name, one short letter, one value name and one help sentence in all commands; the test below holds that.
//! Not here: options of one command alone, which stand in its file in `cmd/`.

mod filter;
mod record;
mod target;
pub mod value;

#[cfg(test)]
mod tests;

pub use filter::{FilterArgs, SampleFilterArgs};
pub use record::{EventArgs, RecordArgs};
pub use target::{CommandArgs, TargetArgs, launch};
