//! Targets of a recording and their lifetime: a command that is started and held until everything watches it, running
//! processes, a cgroup; the signals that steer and end a recording; processes that outlive it.
//!
//! Invariant: a command runs with the signal mask, the ignored signals and the limits that plumb was started with, and
//! only the user's third Ctrl-C kills a process.
//!
//! Elsewhere: events, samples, reading of process data ([`plumb_process`]).

#![deny(unsafe_code)]

pub mod begin;
mod cgroup;
mod descendants;
mod error;
mod held;
mod interpreter;
mod launch;
mod policy;
pub mod signals;
pub mod spawn;
mod subject;
mod target;

pub use cgroup::{Cgroup, Joiners, NoCgroup, own as own_cgroup};
pub use descendants::{Descendants, Running};
pub use error::TargetError;
pub use held::{Child, Held};
pub use launch::{Launch, Prints, program_file};
pub use plumb_process::Program;
pub use policy::{Heeded, Notice, SignalPolicy};
pub use subject::Subject;
pub use target::{End, Target, exit_code};
