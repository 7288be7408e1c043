//! Quantities that programs in the kernel measure: their options and words, and what a measurement left out.

use plumb_capture_api::Unmeasured;
use plumb_capture_bpf::{Measured, OffCpu};

/// A quantity to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureRequest {
    /// Off-CPU time.
    OffCpu {
        /// Waits that are shorter than this are only summed up, in nanoseconds.
        min_ns: u64,
    },
}

/// Words of a quantity for messages.
#[derive(Clone, Copy, Debug)]
pub struct MeasureWords {
    /// The name.
    pub name: &'static str,
    /// The option that requests it.
    pub option: &'static str,
    /// A command that does with less.
    pub(crate) less: &'static str,
}

impl MeasureRequest {
    /// The options for the kernel side. `stacks_per_second`: limit per CPU; `walks`: whether stacks are unwound in the kernel.
    pub(crate) fn measured(self, stacks_per_second: u32, walks: bool) -> Measured {
        match self {
            Self::OffCpu { min_ns } => {
                Measured::OffCpu(OffCpu { min_ns, stacks_per_second, walks, looks_back: true })
            }
        }
    }

    /// The words of the quantity.
    pub fn words(self) -> MeasureWords {
        match self {
            Self::OffCpu { .. } => MeasureWords {
                name: "off-CPU time",
                option: "--off-cpu",
                less: "plumb record -e context-switches, which counts them",
            },
        }
    }

    /// Whether its stacks show the reasons of waits, which get names.
    pub(crate) fn has_reasons(self) -> bool {
        matches!(self, Self::OffCpu { .. })
    }
}

/// Smallest total time that is reported.
const NOTABLE_NS: u64 = 1_000_000;

/// The times that are in no sample, as sentences for the recording.
pub fn left_out(unmeasured: &Unmeasured) -> Vec<String> {
    let mut texts = Vec::new();
    if unmeasured.short > 0 {
        texts.push(format!(
            "{} times off the processor, {:.3} s together, were below --min-block",
            unmeasured.short,
            unmeasured.short_ns as f64 / 1e9
        ));
    }
    if unmeasured.lost > 0 {
        texts.push(format!(
            "{} times off the processor, {:.3} s together, were lost because the buffer was full; to record fewer: --min-block 1ms",
            unmeasured.lost,
            unmeasured.lost_ns as f64 / 1e9
        ));
    }
    if unmeasured.rest_ns >= NOTABLE_NS {
        texts.push(format!(
            "times off the processor of {:.3} s together came after the last stack",
            unmeasured.rest_ns as f64 / 1e9
        ));
    }
    texts
}
