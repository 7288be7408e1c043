//! Prints advice as text.

use std::io::{self, Write};

use plumb_analyze::CallAdvice;
use plumb_call_watch::CallFindings;

use crate::render::duration::time;
use crate::render::rule;
use crate::terminal::{Output, printable};

/// Tracing overhead above this share of the CPU time, in percent, is reported.
const DEAR: f64 = 5.0;

/// Writes the advice as text. `has_other`: other rules hold.
pub fn text(found: &CallFindings, has_other: bool, out: &mut Output<'_>) -> io::Result<()> {
    found.advice.iter().try_for_each(|advice| one(advice, out))?;
    if found.advice.is_empty() && !has_other {
        writeln!(out, "\nno rule of advice holds: {} calls and page faults were watched", found.seen)?;
    }
    if found.dropped > 0 {
        writeln!(
            out,
            "\n{} calls and page faults found no room and were not watched: numbers above are too low",
            found.dropped
        )?;
    }
    if found.cost_percent >= DEAR {
        writeln!(
            out,
            "\nwatching {} calls and page faults took some {:.0}% of the processor time; that is taken off here, not in the table",
            found.seen, found.cost_percent
        )?;
    }
    Ok(())
}

fn one(advice: &CallAdvice, out: &mut Output<'_>) -> io::Result<()> {
    let title = match &advice.about[..] {
        "" => advice.rule.name.to_owned(),
        about => format!("{}: {}", advice.rule.name, printable(about)),
    };
    let mut gains = Vec::new();
    if advice.cpu_ns > 0.0 {
        gains.push(format!("{:.1}% of processor time ({})", advice.cpu_percent, time(advice.cpu_ns)));
    }
    if advice.wall_ns > 0.0 {
        gains.push(format!("{} of waiting, all threads together", time(advice.wall_ns)));
    }
    // Warm memory and shorter waits of other threads may come on top.
    let gain = format!("{} directly", gains.join(" and "));
    rule::write(&title, advice.rule, &advice.measured, &gain, out)
}
