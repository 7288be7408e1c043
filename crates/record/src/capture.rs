//! Chooses how stacks are captured: unwound in the kernel where possible, otherwise copied.

use plumb_capture_api::{KernelUnwinder, UnwindFallbackStats};
use plumb_capture_bpf::{LoadError, LoadOptions, Programs};
use plumb_capture_perf::{Counter, SamplingOptions};
use plumb_target::Target;

/// Methods of capturing stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// [`Capture::Bpf`] where it is available, otherwise [`Capture::Perf`].
    #[default]
    Auto,
    /// The kernel copies the top of each stack, and plumb unwinds the copy.
    Perf,
    /// The kernel unwinds: complete stacks of up to 4,096 frames, also of short processes; requires root and Linux 5.17.
    Bpf,
}

/// Whether the kernel aggregates identical stacks, which lose their timestamps. True for a machine or a cgroup, which may give any number of samples;
/// commands and processes are shown over time.
pub(crate) fn aggregates(target: &Target) -> bool {
    match target {
        Target::Machine | Target::Cgroup(_) | Target::Tree(_) | Target::Awaited(_) => true,
        Target::Command(_) | Target::Processes(_) => false,
    }
}

/// Loads the kernel unwinder, if it is available. Also returns a message if it was asked for and is not available, or if loading failed.
pub fn kernel_unwinder(
    capture: Capture,
    sampled: &SamplingOptions,
    options: LoadOptions,
) -> (Option<Box<dyn KernelUnwinder>>, Option<String>) {
    if capture == Capture::Perf {
        return (None, None);
    }
    let mut counters = sampled.counter.iter().chain(sampled.also.iter().map(|event| &event.counter));
    let options = LoadOptions { places: counters.any(Counter::is_place), ..options };
    match Programs::load(options) {
        Ok(programs) => (Some(Box::new(programs)), None),
        // `plumb doctor` reports this.
        Err(LoadError::Unsupported(_)) if capture == Capture::Auto => (None, None),
        Err(error) => (None, Some(format!("stacks are copied, not walked in the kernel: {error}"))),
    }
}

/// Whether the summary mentions kernel unwinding without `--capture bpf`.
pub(crate) fn is_noteworthy(handed_over: &UnwindFallbackStats) -> bool {
    handed_over.evicted > 0 || handed_over.unseen > 0 || handed_over.damaged > 0
}
