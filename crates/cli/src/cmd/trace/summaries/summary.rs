//! The table by call as text.

use plumb_documents::trace::{CallSummaryRow, summary_columns};
use plumb_syscalls::CallSummaries;

use super::time;

/// Widths of the columns.
const WIDTHS: [usize; 7] = [20, 10, 8, 11, 11, 11, 11];

/// The table.
pub(super) fn text(calls: &CallSummaries) -> String {
    let columns = summary_columns();
    let mut out = line(columns.each_ref().map(|column| column.heading.to_owned())) + "  errors\n";
    for (name, summary) in calls.sorted() {
        let row = CallSummaryRow::new(&name, summary);
        out += &line(columns.each_ref().map(|column| column.text(&row, time)));
        let errors = summary.errors().into_iter().map(|(name, count)| format!("{name} {count}"));
        let unmeasured =
            (summary.unmeasured > 0).then(|| format!("{} of unknown latency", summary.unmeasured));
        let said: Vec<String> = errors.chain(unmeasured).collect();
        if !said.is_empty() {
            out += &format!("  {}", said.join(", "));
        }
        out.push('\n');
    }
    out
}

fn line([name, numbers @ ..]: [String; 7]) -> String {
    let numbers = numbers.iter().zip(&WIDTHS[1..]).map(|(cell, width)| format!(" {cell:>width$}"));
    format!("{name:<width$}{}", numbers.collect::<String>(), width = WIDTHS[0])
}
