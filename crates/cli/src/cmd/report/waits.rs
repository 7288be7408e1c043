//! The reasons for waiting, above the table: shares by kind, with idle threads separately.

use std::io::{self, Write};

use plumb_analyze::{Precision, WaitKind};
use plumb_documents::report::EventReport;

use crate::render::duration::time;
use crate::terminal::{Output, printable};

/// Most functions named in which threads are idle.
const NAMED: usize = 3;

/// Writes the kinds, each after a `#`; nothing for other events.
pub fn write(shown: &EventReport<'_>, out: &mut Output<'_>) -> io::Result<()> {
    let Some(waits) = &shown.waits else { return Ok(()) };
    let (whole, precision) = (waits.whole(), Precision::of(&shown.view));
    if whole.samples > 0 {
        writeln!(out, "# Threads waited for:")?;
    }
    for &(kind, cost) in waits.kinds.iter().filter(|(kind, _)| *kind != WaitKind::Idle) {
        let share = precision.percent(cost.percent_of(whole));
        writeln!(out, "# {share:>8}  {}, {}", kind.title(), time(cost.weight as f64))?;
    }
    if shown.idle.is_some() {
        let names: Vec<String> =
            waits.idle_names().into_iter().take(NAMED).map(|name| printable(name).into_owned()).collect();
        let threads = match waits.idle_threads() {
            1 => "1 thread that waits".to_owned(),
            threads => format!("{threads} threads that wait"),
        };
        let cost = time(waits.idle.part().weight as f64);
        writeln!(out, "# Idle, not in these shares: {cost} of {threads} for work ({})", names.join(", "))?;
    }
    writeln!(out, "#")
}
