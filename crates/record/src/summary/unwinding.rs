//! The share of stacks that were unwound in the kernel.

use plumb_analyze::part_of;
use plumb_capture_api::UnwindFallbackStats;

/// The number of stacks unwound in the kernel and of others, in one line. `None`: there were no stacks to unwind, such as of a hanging process.
pub(super) fn line(handed_over: &UnwindFallbackStats) -> Option<String> {
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
        text += &format!(", the rest from stack copies: {}", causes.collect::<Vec<_>>().join(", "));
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
