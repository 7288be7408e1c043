//! Counted and timed calls as text: errors, bytes, times and the longest calls.

use std::io::{self, Write};

use plumb_analyze::Cause;
use plumb_call_watch::described;
use plumb_capture_perf::Tracefs;
use plumb_documents::column;
use plumb_documents::kernel_calls::{CountedRow, columns, error_name};
use plumb_profile::Profile;
use plumb_syscalls::{
    Abi, CallEnd, CountedCall, CountedCalls, Longest, Outcome, Piece, Signature, Times, What, gives_bytes,
};

use super::Args;
use super::counted::Apart;
use crate::render::duration::short_time;
use crate::render::table::{self, BARS, Cells, Column, Layout};
use crate::terminal::{Output, printable};

/// Most lines of calls per thread or process, and most longest calls.
const MOST: usize = 10;
/// A mean is reliable if it is at least this many times the tracing overhead.
const TRUSTED: f64 = 3.0;

pub(super) fn write(
    counted: &CountedCalls,
    profile: &Profile,
    args: &Args,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let events = counted.events;
    writeln!(
        out,
        "# page faults: {} minor, {} major; context switches: {} waiting, {} preempted",
        events.minor_faults, events.major_faults, events.voluntary_switches, events.involuntary_switches
    )?;
    if events.lost > 0 {
        writeln!(out, "# {} calls found no room and are in no sum", events.lost)?;
    }
    if events.skipped > 0 {
        writeln!(
            out,
            "# up to {} calls of all processes were missed, because the kernel had preempted the program that counts them",
            events.skipped
        )?;
    }
    results(&counted.calls, out)?;
    if counted.is_timed {
        writeln!(out, "\n# how long calls took, from beginning to end")?;
        times(&counted.calls, counted, args, out)?;
        longest(counted, profile, out)?;
    }
    for group in &counted.groups {
        let all: u64 = group.calls.iter().map(|call| call.account.calls).sum();
        let name = printable(&group.name);
        match args.per {
            Some(Apart::File) => writeln!(out, "\n# file {name} (inode {}): {all} calls", group.id)?,
            Some(Apart::Thread) => writeln!(out, "\n# thread {} {name}: {all} calls", group.id)?,
            _ => writeln!(out, "\n# process {} {name}: {all} calls", group.id)?,
        }
        let calls = &group.calls[..group.calls.len().min(MOST)];
        if counted.is_timed {
            times(calls, counted, args, out)?
        } else {
            counts(calls, args, out)?
        }
        if let Some(more) = group.calls.len().checked_sub(MOST).filter(|&more| more > 0) {
            writeln!(out, "# and {more} more")?;
        }
    }
    let tax = counted.overhead;
    write!(
        out,
        "#\n# tracing overhead: {:.0} ns for each counted call, {:.0} ns for each call of other processes on this machine",
        tax.own_ns(),
        tax.others_ns()
    )?;
    match counted.is_timed {
        true => writeln!(out, "; {} ns per call are subtracted from the times above", tax.floor_ns()),
        false => writeln!(out),
    }
}

/// Errors and bytes, one line per call that has any.
fn results(calls: &[CountedCall], out: &mut Output<'_>) -> io::Result<()> {
    for call in calls {
        let account = &call.account;
        let mut parts: Vec<String> =
            account.errors.iter().map(|(&error, count)| format!("{count} {}", error_name(error))).collect();
        if account.given > 0 && gives_bytes(&call.name) {
            let good = account.calls.saturating_sub(account.failed).max(1);
            parts.push(format!("{} bytes, {} each", account.given, account.given / good));
        }
        if !parts.is_empty() {
            writeln!(out, "# {}: {}", call.name, parts.join(", "))?;
        }
    }
    Ok(())
}

fn table_column(column: &&column::Column<CountedRow<'_>>) -> Column {
    let layout = if column.key == "name" { Layout::Word } else { Layout::Number };
    Column { title: column.heading, layout }
}

fn counts(calls: &[CountedCall], args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let all = columns();
    let columns = column::chosen(&all, "calls errors name");
    let cells = |row| columns.iter().map(|column| column.text(&row, short_or_none)).collect();
    let lines: Vec<Cells> = calls.iter().map(CountedRow::new).map(cells).collect();
    table::write(&columns.iter().map(table_column).collect::<Vec<_>>(), &lines, args.full_names, out)
}

fn short_or_none(ns: u64) -> String {
    if ns == 0 { "-".to_owned() } else { short_time(ns as f64) }
}

fn times(calls: &[CountedCall], counted: &CountedCalls, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let all = columns();
    let shown: Vec<_> = all.iter().filter(|column| column.key != "errors").collect();
    let mut columns: Vec<Column> = shown.iter().map(table_column).collect();
    columns.push(Column { title: "Histogram", layout: Layout::Word });
    let floor = counted.overhead.floor_ns() as f64;
    let (mut lines, mut doubted) = (Vec::new(), false);
    for call in calls {
        let Some(times) = call.account.times.as_ref().filter(|times| times.calls > 0) else { continue };
        let doubt = times.mean_ns() < TRUSTED * floor;
        doubted |= doubt;
        let row = CountedRow::new(call);
        let cells = shown.iter().map(|column| {
            let mark = if doubt && column.key == "mean_ns" { "~" } else { "" };
            format!("{mark}{}", column.text(&row, short_or_none))
        });
        lines.push(cells.chain([histogram(times)]).collect::<Cells>());
    }
    table::write(&columns, &lines, args.full_names, out)?;
    if doubted {
        writeln!(out, "# ~ is short beside what measuring costs ({floor:.0} ns): take it as about right")?;
    }
    Ok(())
}

/// Bars from the first to the last bucket with a call, with the limits of both.
fn histogram(times: &Times) -> String {
    let most = times.buckets.iter().copied().max().unwrap_or(0);
    let first = times.buckets.iter().position(|&count| count > 0);
    let last = times.buckets.iter().rposition(|&count| count > 0);
    let (Some(first), Some(last)) = (first, last) else { return String::new() };
    let bar = |&count: &u64| match count {
        0 => ' ',
        // Logarithmic, so that a few long calls are visible.
        count => {
            let height = (count as f64).ln_1p() / (most as f64).ln_1p() * (BARS.len() - 1) as f64;
            BARS[(height.round() as usize).min(BARS.len() - 1)]
        }
    };
    let bars: String = times.buckets[first..=last].iter().map(bar).collect();
    format!("{} {bars} {}", short_time(2_f64.powi(first as i32)), short_time(2_f64.powi(last as i32 + 1)))
}

/// The longest call of each kind, with its arguments.
fn longest(counted: &CountedCalls, profile: &Profile, out: &mut Output<'_>) -> io::Result<()> {
    let longest = |call: &'_ CountedCall| call.account.times.as_ref().and_then(|times| times.longest.clone());
    let mut all: Vec<_> = counted.calls.iter().filter_map(|call| Some((call, longest(call)?))).collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.ns));
    let tracefs = Tracefs::open().ok();
    writeln!(out, "\n# the longest of each, by its thread")?;
    for (call, one) in all.iter().take(MOST) {
        let at = one.end_ns.saturating_sub(profile.meta.start_ns) as f64 / 1e9;
        let known = tracefs.as_ref().and_then(|tracefs| described(tracefs, &call.name, 0));
        let said = known.and_then(|known| in_words(&call.name, &known, one));
        let said = said.unwrap_or_else(|| in_numbers(call, one));
        writeln!(out, "{:>10}  {said}, thread {} at {at:.3} s", short_time(one.ns as f64), one.tid)?;
    }
    Ok(())
}

/// A call with arguments as the kernel describes them; `None` if the call has no number on this machine.
fn in_words(name: &str, signature: &Signature, one: &Longest) -> Option<String> {
    let text = signature.takes().iter().position(|take| matches!(take.what, What::String { .. }));
    let text = text.filter(|_| !one.text.is_empty());
    let piece = text.map(|take| Piece { take, is_cut: false, bytes: one.text.as_bytes() });
    let call = plumb_syscalls::SystemCall {
        begin_ns: one.end_ns.saturating_sub(one.ns),
        end_ns: one.end_ns,
        pid: one.pid,
        tid: one.tid,
        comm: b"",
        abi: Abi::NATIVE,
        number: plumb_syscalls::number(Abi::NATIVE, name)?,
        args: one.args,
        end: CallEnd::Returned(Outcome::of(one.result)),
        is_late: false,
        is_shown: true,
        pieces: piece.into_iter().collect(),
    };
    // The descriptor may have been closed long ago.
    let mut nameless = |_: i32, _: &mut String| {};
    let mut args: Vec<String> = Vec::new();
    signature.arguments(&call, &mut nameless, |name, value| args.push(format!("{name}: {value}")));
    // After exec, the old program's registers are gone.
    if Cause::of_call(name) == Cause::Exec && one.result == 0 {
        args.truncate(usize::from(!one.text.is_empty()));
    }
    let mut result = String::new();
    signature.end(&call, &mut nameless, &mut result);
    Some(printable(&format!("{name}({}) = {result}", args.join(", "))).into_owned())
}

/// A call with nothing known but the registers.
fn in_numbers(call: &CountedCall, one: &Longest) -> String {
    let args: Vec<String> = one.args.iter().map(|&arg| argument(arg)).collect();
    let path = if one.text.is_empty() { String::new() } else { format!(" \"{}\"", printable(&one.text)) };
    format!("{}({}){path} = {}", call.name, args.join(", "), result(one.result))
}

/// Formats a register value: small numbers in decimal, all others as a hexadecimal address.
fn argument(value: u64) -> String {
    // Descriptors such as AT_FDCWD are 32 bits wide.
    let half = u32::try_from(value).map_or(value.cast_signed(), |half| half.cast_signed().into());
    match (half, value.cast_signed()) {
        (small @ -4096..=0xffff, _) | (_, small @ -4096..=-1) => small.to_string(),
        _ => format!("{value:#x}"),
    }
}

fn result(value: i64) -> String {
    match Outcome::of(value) {
        Outcome::Error(number) => error_name(number).into_owned(),
        Outcome::Value(value) => argument(value.cast_unsigned()),
    }
}
