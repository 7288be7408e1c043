//! Chooses how stacks are captured: unwound in the kernel where possible, otherwise copied.

use plumb_capture_api::{KernelUnwinder, UnwindFallbackStats};
use plumb_capture_bpf::{LoadError, Programs};
use plumb_capture_perf::{Counter, SamplingOptions};
use plumb_target::Target;

use crate::render::precision::part_of;

/// Methods of capturing stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Capture {
    /// bpf where it is available, otherwise perf
    #[default]
    Auto,
    /// The kernel copies the top of each stack, and plumb unwinds the copy
    Perf,
    /// The kernel unwinds: complete stacks of up to 4,096 frames, also of short processes; requires root and Linux 5.17
    Bpf,
}

/// Whether the kernel aggregates identical stacks, which lose their timestamps. True for a machine or a cgroup, which may give any number of samples;
/// commands and processes are shown over time.
fn aggregates(target: &Target) -> bool {
    match target {
        Target::Machine | Target::Cgroup(_) | Target::Tree(_) | Target::Awaited(_) => true,
        Target::Command(_) | Target::Processes(_) => false,
    }
}

/// Loads the kernel unwinder, if it is available. Also returns a message if it was asked for and is not available, or if loading failed.
pub fn assistant(
    capture: Capture,
    target: &Target,
    sampled: &SamplingOptions,
    timeline: bool,
    table_mib: u16,
) -> (Option<Box<dyn KernelUnwinder>>, Option<String>) {
    if capture == Capture::Perf {
        return (None, None);
    }
    let mut counters = sampled.counter.iter().chain(sampled.also.iter().map(|event| &event.counter));
    let options = plumb_capture_bpf::LoadOptions {
        places: counters.any(Counter::is_place),
        ..options(timeline || !aggregates(target), table_mib)
    };
    match Programs::load(options) {
        Ok(programs) => (Some(Box::new(programs)), None),
        // `plumb doctor` reports this.
        Err(LoadError::Unsupported(_)) if capture == Capture::Auto => (None, None),
        Err(error) => (None, Some(format!("stacks are copied, not walked in the kernel: {error}"))),
    }
}

/// Options for unwinding in the kernel.
pub fn options(timeline: bool, table_mib: u16) -> plumb_capture_bpf::LoadOptions {
    plumb_capture_bpf::LoadOptions {
        counting: !timeline,
        table_memory: usize::from(table_mib) << 20,
        ..plumb_capture_bpf::LoadOptions::default()
    }
}

/// Whether the summary mentions kernel unwinding without `--capture bpf`.
pub fn is_noteworthy(handed_over: &UnwindFallbackStats) -> bool {
    handed_over.evicted > 0 || handed_over.unseen > 0 || handed_over.damaged > 0
}

/// The number of stacks unwound in the kernel and of others, in one line. `None`: there were no stacks to unwind, such as of a hanging process.
pub fn line(handed_over: &UnwindFallbackStats) -> Option<String> {
    let UnwindFallbackStats { walked, reasons, unseen, table_bytes, evicted, damaged, .. } = handed_over;
    let others: u64 = reasons.iter().map(|(_, samples)| samples).sum();
    if walked + others + unseen + damaged == 0 {
        return None;
    }
    let share = |samples: u64| part_of(samples, walked + others);
    let mut text = format!("{} of samples walked in the kernel", share(*walked));
    let mut causes: Vec<_> = reasons.iter().filter(|(_, samples)| *samples > 0).collect();
    causes.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    if !causes.is_empty() {
        let causes = causes.iter().map(|(cause, samples)| format!("{} {cause}", share(*samples)));
        text += &format!(", else from copies: {}", causes.collect::<Vec<_>>().join(", "));
    }
    if *unseen > 0 {
        text += &format!("; tracepoints passed within an interrupt and not seen: at most {unseen}");
    }
    if *damaged > 0 {
        text += &format!("; {damaged} damaged messages");
    }
    text += &format!("; tables {} MiB", table_bytes >> 20);
    if *evicted > 0 {
        text += &format!(", {evicted} had to make room for others (--max-table-memory)");
    }
    Some(text)
}
