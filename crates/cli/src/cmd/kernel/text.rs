//! The table of kernel time as text.

use std::io::{self, Write};

use plumb_analyze::{Cause, Cost, Precision};
use plumb_syscalls::Account;

use super::{Args, Shown, calls};
use crate::render::duration::{short_time, time};
use crate::render::label;
use crate::render::table::{self, Column, Layout};
use crate::terminal::{Output, printable};

/// A larger difference from the kernel's accounting, in percent, is explained.
const FAR_PERCENT: f64 = 5.0;

pub(super) fn write(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    head(shown, out)?;
    if shown.time.rows.is_empty() {
        return writeln!(out, "# no samples");
    }
    writeln!(out, "#")?;
    rows(shown, args, out)?;
    if let Some(counted) = &shown.counted {
        calls::write(&counted.all, shown.view.profile(), args, out)?;
    }
    match args.stacks {
        Some(most) => stacks(shown, most, args.full_names, out),
        None => Ok(()),
    }
}

fn head(shown: &Shown<'_>, out: &mut Output<'_>) -> io::Result<()> {
    let (kernel, meta) = (&shown.time, &shown.view.profile().meta);
    if !meta.command.is_empty() {
        writeln!(out, "# {}", printable(&meta.command.join(" ")))?;
    }
    let user = kernel.whole.weight.saturating_sub(kernel.kernel.weight);
    let rate = meta.frequency_hz.map_or(String::new(), |hz| format!(" at {hz} a second"));
    writeln!(
        out,
        "# sampled: {}, {} in user code and {} in the kernel; {}{rate}, {}",
        amount(shown, kernel.whole),
        amount(shown, Cost { weight: user, ..kernel.whole }),
        amount(shown, kernel.kernel),
        label::samples(kernel.whole.samples),
        label::lost(meta, &shown.filter)
    )?;
    if kernel.whole.samples > 0
        && let (Some(accounted), Some(off)) = (kernel.accounted_ns, kernel.off_percent())
    {
        let side = if off < 0.0 { "less" } else { "more" };
        writeln!(
            out,
            "# the kernel accounts for {}: the rows are {:.1}% {side}",
            time(accounted as f64),
            off.abs()
        )?;
        if off < -FAR_PERCENT && kernel.kernel.samples == 0 {
            writeln!(out, "# what is missing is the kernel's part, of which no sample was taken")?;
        }
    }
    if kernel.nameless_kernel {
        writeln!(
            out,
            "# kernel functions have no names here: where a row is called other, what the kernel did can't be told; \
             as root, or with sysctl kernel.kptr_restrict=0, it can"
        )?;
    }
    shown.view.warnings().iter().try_for_each(|warning| writeln!(out, "# {}", printable(warning)))
}

fn rows(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let titles = [if shown.time.is_time { "CPU time" } else { "Events" }, "Share", "±", "Samples"];
    let counted = if shown.counted.is_some() { &["Calls", "Errors", "Each"][..] } else { &[] };
    let mut columns: Vec<Column> =
        titles.iter().chain(counted).map(|&title| Column { title, layout: Layout::Number }).collect();
    columns.push(Column { title: "Went into", layout: Layout::Word });
    let mut lines = Vec::new();
    let precision = Precision::of(&shown.view);
    for row in &shown.time.rows {
        let of_row = shown.counted.as_ref().map(|counted| counted.of_row(&row.name));
        lines.push(line(shown, precision, row.cost, row.cause, (label::cause(row.cause, &row.name), of_row)));
        for &(kind, cost) in row.kinds.iter().filter(|_| row.kinds.len() > 1) {
            lines.push(line(shown, precision, cost, row.cause, (&format!("  {kind}"), of_row.map(|_| None))));
        }
    }
    table::write(&columns, &lines, args.full_names, out)?;
    writeln!(out, "# ± is one standard error, in percent of the row: by 1/√n, of n samples")?;
    let Some(counted) = &shown.counted else { return Ok(()) };
    let calls = |name: &str| counted.of_row(name).map_or(0, |account| account.calls);
    let too_brief: Vec<String> = counted
        .unsampled(|name| shown.has_row(name))
        .map(|(name, cause)| format!("{} {}", calls(name), label::cause(cause, name)))
        .collect();
    if too_brief.is_empty() {
        return Ok(());
    }
    writeln!(out, "# too brief for a sample: {}", too_brief.join(", "))
}

/// Writes a line, with the row's counts if anything was counted.
fn line(
    shown: &Shown<'_>,
    precision: Precision,
    cost: Cost,
    cause: Cause,
    (name, counted): (&str, Option<Option<&Account>>),
) -> Vec<String> {
    // Idle time is not part of the used CPU time.
    let share = match cause {
        Cause::Idle => "-".to_owned(),
        _ => precision.percent(cost.percent_of(shown.time.whole)),
    };
    let (error, samples) = match cost.samples {
        0 => ("-".to_owned(), "-".to_owned()),
        samples => (format!("{:.1}", 100.0 / (samples as f64).sqrt()), samples.to_string()),
    };
    let mut cells = vec![amount(shown, cost), share, error, samples];
    if let Some(account) = counted {
        let each = |account: &Account| match (cost.weight, account.calls) {
            (0, _) | (_, 0) => "-".to_owned(),
            (weight, calls) => short_time(weight as f64 / calls as f64),
        };
        let number = |number: u64| if number == 0 { "-".to_owned() } else { number.to_string() };
        cells.push(account.map_or("-".to_owned(), |account| number(account.calls)));
        cells.push(account.map_or("-".to_owned(), |account| number(account.failed)));
        cells.push(account.map_or("-".to_owned(), each));
    }
    cells.push(name.to_owned());
    cells
}

fn amount(shown: &Shown<'_>, cost: Cost) -> String {
    if shown.time.is_time { time(cost.weight as f64) } else { cost.weight.to_string() }
}

/// The stacks of each row.
fn stacks(shown: &Shown<'_>, most: usize, full: bool, out: &mut Output<'_>) -> io::Result<()> {
    for row in shown.time.rows.iter().filter(|row| !row.stacks.is_empty()) {
        writeln!(
            out,
            "\n{}: {}, {}",
            label::cause(row.cause, &row.name),
            amount(shown, row.cost),
            label::samples(row.cost.samples)
        )?;
        let precision = Precision::of_part(&shown.view, row.cost);
        for &(node, cost) in row.stacks.iter().take(most) {
            let text = label::stack(&shown.view, node, full);
            writeln!(out, "  {:>6}  {text}", precision.percent(cost.percent_of(row.cost)))?;
        }
        if let Some(more) = row.stacks.len().checked_sub(most).filter(|&more| more > 0) {
            writeln!(out, "          and {more} more stacks")?;
        }
    }
    Ok(())
}
