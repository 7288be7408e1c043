//! Labels: the owner of each sample, as OpenTelemetry resource attributes.
//!
//! Invariant: a value that differs in each run of a program (process id, path of a temporary file) appears only in attributes that
//! servers know to ignore (`container.id`), because each set of attributes is a series in the store.

mod cgroup;
mod container;
mod context;
mod directory;
mod process;
mod program;
mod relabel;

pub(crate) use directory::{KTHREADD, LastLives, Owner, ProcessDirectory, ProcessState, Resources, place_of};
pub(crate) use relabel::Attributes;
pub use relabel::{RelabelRule, RelabelRules};
