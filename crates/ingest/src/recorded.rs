//! The machine whose records are ingested: its architecture, which decides how stacks are unwound, and the place of its files.
//!
//! A live recording is of this machine. Elsewhere: unwinding (`stacks`), files (`spaces`).

use std::path::Path;
use std::sync::Arc;

use plumb_process::RecordedFiles;
use plumb_profile::InstructionSet;
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::x86_64::X86_64;
use plumb_unwind::{Architecture, Isa, LinuxRegisters, Native};

/// The machine that records come from.
#[derive(Clone, Debug)]
pub(crate) struct RecordedMachine {
    /// The architecture of its 64-bit programs; `None`: one whose stacks are not unwound.
    isa: Option<Isa>,
    /// The places of its files.
    pub(crate) files: RecordedFiles,
}

impl Default for RecordedMachine {
    fn default() -> Self {
        Self { isa: Some(Native::ISA), files: RecordedFiles::default() }
    }
}

impl RecordedMachine {
    /// A machine by its name in `uname -m`. The files that it had are below a directory, or at their own paths.
    pub(crate) fn new(name: &str, below: Option<&Path>) -> Self {
        let isa = match name {
            "" => Some(Native::ISA),
            X86_64::NAME => Some(X86_64::ISA),
            Aarch64::NAME => Some(Aarch64::ISA),
            _ => None,
        };
        let below = below.map(Arc::from);
        Self { isa, files: RecordedFiles { below, machines: InstructionSet::machines_of(name) } }
    }

    /// The architecture whose registers samples have; `None`: one whose stacks are not unwound.
    pub(crate) fn isa(&self) -> Option<Isa> {
        self.isa
    }

    /// The architecture of the code in its files.
    pub(crate) fn code(&self) -> Isa {
        self.isa.unwrap_or(Native::ISA)
    }

    /// Whether it may be this machine.
    pub(crate) fn is_native(&self) -> bool {
        self.isa == Some(Native::ISA)
    }
}
