//! The quantities that are measured: a module each, with its programs' state, its tracepoints and its options.
//!
//! Elsewhere: the programs (`bpf/`), and how weights add up in a recording (`ingest`).

mod off_cpu;

use aya::{Ebpf, EbpfLoader};
use plumb_capture_api::Measure;

use crate::loader::Programs;
use crate::object::{Machine, Watch};
use crate::refusal::LoadError;

pub use off_cpu::OffCpu;

/// Tracepoints of all measurements.
pub(crate) const WATCHES: [Watch; 3] = off_cpu::WATCHES;

/// A quantity to measure, with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Time off the CPU.
    OffCpu(OffCpu),
}

/// The programs of a measurement, loaded and started.
pub(crate) enum Measurement {
    OffCpu(off_cpu::Switches),
}

/// The measurements' constants in the programs, to be set before these are loaded.
#[derive(Default)]
pub(crate) struct Settings {
    off_cpu: off_cpu::Settings,
}

impl Settings {
    pub(crate) fn of(measured: Option<Measured>) -> Self {
        match measured {
            Some(Measured::OffCpu(options)) => Self { off_cpu: options.settings() },
            None => Self::default(),
        }
    }

    pub(crate) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        self.off_cpu.set(loader);
    }
}

impl Measured {
    /// Loads the programs and attaches them. They measure nothing until they are switched on.
    pub(crate) fn load(self, machine: &Machine, bpf: &mut Ebpf) -> Result<Measurement, LoadError> {
        match self {
            Self::OffCpu(options) => {
                off_cpu::Switches::load(machine, bpf, options.looks_back).map(Measurement::OffCpu)
            }
        }
    }
}

impl Programs {
    /// The measurement, if one was loaded.
    pub(crate) fn measurement(&mut self) -> Option<&mut dyn Measure> {
        match self.measurement {
            Some(Measurement::OffCpu(_)) => Some(self),
            None => None,
        }
    }
}
