//! The parts of a program's CPU time: the kernel's work to start and end processes, and the rest.

use crate::kernel::{Cause, Mark, Place};

/// The part that a sample's time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Code of the program, its libraries and loader.
    User,
    /// Making a process or thread, on both sides: the parent's call and the child's first steps.
    Fork,
    /// Replacing a program, including the release of the old one's memory.
    Exec,
    /// Page faults, including those inside other system calls.
    Fault,
    /// The end of a process: freeing its memory, closing its files.
    Exit,
    /// All other kernel time: other system calls, interrupts, scheduling.
    Kernel,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] = [Part::User, Part::Fork, Part::Exec, Part::Fault, Part::Exit, Part::Kernel];

    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Part::User => "user",
            Part::Fork => "fork",
            Part::Exec => "exec",
            Part::Fault => "fault",
            Part::Exit => "exit",
            Part::Kernel => "kernel",
        }
    }

    /// Returns the part of samples at a place.
    pub(super) fn of(place: &Place<'_>) -> Self {
        match place.cause(None) {
            Cause::User => Part::User,
            Cause::Fork => Part::Fork,
            Cause::Exec => Part::Exec,
            Cause::Exit => Part::Exit,
            Cause::Fault => Part::Fault,
            Cause::Call if place.has(Mark::FAULTING) => Part::Fault,
            Cause::Call | Cause::Entry | Cause::Interrupt | Cause::Thread | Cause::Idle | Cause::Other => {
                Part::Kernel
            }
        }
    }
}
