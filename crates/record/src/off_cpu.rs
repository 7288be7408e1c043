//! Off-CPU time: loads the measurement, and says what it left out.

use plumb_capture_api::{KernelUnwinder, Unmeasured};
use plumb_capture_bpf::{LoadOptions, Programs};

use crate::error::RecordError;

/// Loads the programs that measure off-CPU time.
pub fn measure(options: LoadOptions) -> Result<Box<dyn KernelUnwinder>, RecordError> {
    let programs = Programs::load(options).map_err(RecordError::OffCpu)?;
    Ok(Box::new(programs))
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
