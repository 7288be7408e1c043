//! Who is recorded, and what becomes of them: a command that is started and held until everything watches it, processes
//! that run, a cgroup; the signals that steer and end a recording; who outlives it.
//!
//! Invariant: a command runs with the signal mask, the ignored signals and the limits that plumb was started with, and
//! nobody is killed but by the user's third Ctrl-C.
//!
//! Not here: events, samples, what is read of a process ([`plumb_process`]).

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
pub use target::{End, Target};
