//! How stacks are captured: walked in the kernel where that is possible and asked for, else copied.

use plumb_capture_bpf::Programs;
use plumb_capture_perf::{Assistant, HandedOver, Options};

/// How to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Capture {
    /// What is known to be complete here: perf
    #[default]
    Auto,
    /// The kernel copies the top of each stack
    Perf,
    /// Stacks are walked in the kernel (experimental)
    Bpf,
}

/// What walks stacks in the kernel, if something does, and what to say if it was asked for and can't be.
pub(super) fn assistant(
    capture: Capture,
    sampled: &Options,
    timeline: bool,
    table_mib: u16,
) -> (Option<Box<dyn Assistant>>, Option<String>) {
    if capture != Capture::Bpf {
        return (None, None);
    }
    if !sampled.also.is_empty() {
        let note = "stacks are copied, not walked in the kernel: there are several events (-e)";
        return (None, Some(note.to_owned()));
    }
    if let Some(counter) = sampled.counter.as_ref().filter(|counter| !counter.takes_programs()) {
        let note =
            format!("stacks are copied, not walked in the kernel: samples of {} can't be", counter.name());
        return (None, Some(note));
    }
    let options =
        plumb_capture_bpf::Options { counting: !timeline, table_memory: usize::from(table_mib) << 20 };
    match Programs::load(options) {
        Ok(programs) => (Some(Box::new(programs)), None),
        Err(error) => (None, Some(format!("stacks are copied, not walked in the kernel: {error}"))),
    }
}

/// What was walked in the kernel and what was not, in one line.
pub(super) fn line(handed_over: &HandedOver) -> String {
    let HandedOver { walked, reasons, table_bytes, evicted, damaged, .. } = handed_over;
    let others: u64 = reasons.iter().map(|(_, samples)| samples).sum();
    let all = (walked + others).max(1) as f64;
    let share = |samples: u64| samples as f64 / all * 100.0;
    let mut text = format!("{:.1}% of samples walked in the kernel", share(*walked));
    let mut causes: Vec<_> = reasons.iter().filter(|(_, samples)| *samples > 0).collect();
    causes.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    if !causes.is_empty() {
        let causes = causes.iter().map(|(cause, samples)| format!("{:.1}% {cause}", share(*samples)));
        text += &format!(", else from copies: {}", causes.collect::<Vec<_>>().join(", "));
    }
    if *damaged > 0 {
        text += &format!("; {damaged} damaged messages");
    }
    text += &format!("; tables {} MiB", table_bytes >> 20);
    if *evicted > 0 {
        text += &format!(", {evicted} had to make room for others (--max-table-memory)");
    }
    text
}
