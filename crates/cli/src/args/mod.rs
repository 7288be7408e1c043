//! The options that several commands share: whom to observe, how to record, which part of a profile to look at.
//!
//! Invariant: an option has one name, one short letter, one value name and one help sentence in all commands; the test below holds that.
//! Not here: options of one command alone, which stand in its file in `cmd/`.

#[cfg(feature = "server")]
mod access;
mod filter;
#[cfg(any(feature = "agent", feature = "server"))]
mod log;
#[cfg(feature = "agent")]
pub mod profiles;
mod record;
mod symfs;
mod target;
pub mod value;

#[cfg(test)]
mod tests;

#[cfg(feature = "server")]
pub use access::AccessArgs;
pub use filter::{FilterArgs, native_help};
#[cfg(any(feature = "agent", feature = "server"))]
pub use log::LogArgs;
#[cfg(feature = "agent")]
pub use profiles::ProfileArgs;
pub use record::{CaptureMethod, EventArgs, RecordArgs};
pub use symfs::SymfsArgs;
pub use target::{CommandArgs, TargetArgs, launch};
