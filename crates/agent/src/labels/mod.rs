//! Labels: whose samples are whose, as attributes of OpenTelemetry's resources.
//!
//! Invariant: a value that is another one in each run of a program (process id, path of a temporary file) is in no attribute but those that
//! servers know to leave out (`container.id`): each set of attributes is a series in the store.

mod cgroup;
mod container;
mod directory;
mod process;
mod relabel;

pub(crate) use directory::{KTHREADD, LastLives, Owner, ProcessDirectory, ProcessState, Resources, place_of};
pub(crate) use relabel::Attributes;
pub use relabel::{RelabelRule, RelabelRules};
