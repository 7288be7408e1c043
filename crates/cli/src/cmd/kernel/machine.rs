//! The table of kernel time as JSON and CSV. Field names are stable.

use std::borrow::Cow;
use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Cost, Filter, KernelRow};
use plumb_call_watch::CallFindings;
use plumb_documents::kernel;
use plumb_formats::csv::field;
use plumb_syscalls::{Account, gives_bytes};
use serde::Serialize;
use serde_json::{Value, json};

use super::calls::error_name;
use super::counted::{Call, Counted};
use super::{Args, Shown};
use crate::advice::{self, processes};
use crate::terminal::Output;

/// Writes one JSON object. `total_ns` is the sum of all rows except idle CPUs; unmeasured values are null.
pub(super) fn json(
    shown: &Shown<'_>,
    calls: Option<&CallFindings>,
    filter: &Filter,
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let stacks = args.stacks.unwrap_or(0);
    let mut document = kernel::document(&shown.view, &shown.time, stacks);
    if let Some(rows) = document["rows"].as_array_mut() {
        rows.extend(unsampled(shown).map(|row| kernel::row(&shown.view, &shown.time, &row, 0)));
        rows.iter_mut().for_each(|row| add_counts(shown, row));
    }
    if let Some(calls) = calls {
        document["advice"] = advice::json(calls);
        document["advice"]["processes"] = processes::json(shown.view.profile(), filter).into();
    }
    if let Some(counted) = &shown.counted {
        counted_json(counted, &mut document);
    }
    plumb_formats::json::write(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// Adds the counts of a row; null if nothing was counted.
fn add_counts(shown: &Shown<'_>, row: &mut Value) {
    let account = row["name"].as_str().and_then(|name| of_row(shown, name));
    row["calls"] = account.map(|account| account.calls).into();
    row["errors"] = account.map(|account| account.failed).into();
    row["wall_ns"] = wall_ns(account).into();
}

/// The counts of a row; `None` if nothing was counted. User code makes no calls.
fn of_row<'a>(shown: &'a Shown<'_>, name: &str) -> Option<&'a Account> {
    shown.counted.as_ref()?.of_row(name)
}

/// Total duration of a row's calls.
fn wall_ns(account: Option<&Account>) -> Option<u64> {
    Some(account?.times.as_ref()?.wall_ns)
}

/// Rows of calls without a sample.
fn unsampled<'a>(shown: &'a Shown<'_>) -> impl Iterator<Item = KernelRow> + 'a {
    let counted = shown.counted.iter();
    counted.flat_map(|counted| counted.unsampled(|name| shown.has_row(name))).map(|(name, cause)| KernelRow {
        name: name.to_owned(),
        cause,
        cost: Cost::default(),
        kinds: Vec::new(),
        stacks: Vec::new(),
    })
}

/// Adds the counts that belong to no row.
fn counted_json(counted: &Counted, document: &mut Value) {
    let (events, tax) = (counted.events, counted.tax);
    document["calls"] = counted.calls.iter().map(call_json).collect();
    document["events"] = json!({
        "minor_faults": events.minor_faults,
        "major_faults": events.major_faults,
        "voluntary_switches": events.voluntary_switches,
        "involuntary_switches": events.involuntary_switches,
        "ended_threads": events.ended,
        "lost_calls": events.lost,
        "missed_calls": events.skipped,
    });
    document["tax"] = json!({
        "null_call_ns": tax.bare_ns,
        "each_call_of_others_ns": tax.others_ns(),
        "each_counted_call_ns": tax.own_ns(),
        "floor_ns": counted.is_timed.then(|| tax.floor_ns()),
    });
    if !counted.groups.is_empty() {
        let groups = counted.groups.iter().map(|group| {
            let calls: Vec<Value> = group.calls.iter().map(call_json).collect();
            json!({"id": group.id, "name": group.name, "calls": calls})
        });
        document["groups"] = groups.collect();
    }
}

fn call_json(call: &Call) -> Value {
    let account = &call.account;
    let error = |(&number, &count): (&u32, &u64)| (error_name(number).into_owned(), count.into());
    let errors: serde_json::Map<String, Value> = account.errors.iter().map(error).collect();
    let mut value = json!({
        "name": call.name,
        "calls": account.calls,
        "errors": account.failed,
        "errors_by_name": errors,
        "bytes": gives_bytes(&call.name).then_some(account.given),
    });
    if let Some(times) = &account.times {
        let buckets = times.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram: Vec<Value> = buckets
            .map(|(bucket, count)| json!({"from_ns": 1_u64 << bucket, "to_ns": 2_u64 << bucket, "calls": count}))
            .collect();
        let longest = times.longest.as_ref().map(|one| {
            json!({"ns": one.ns, "result": one.result, "args": one.args, "path": one.text, "pid": one.pid, "tid": one.tid,
                   "end_ns": one.end_ns})
        });
        let measured = json!({
            "timed_calls": times.calls,
            "wall_ns": times.wall_ns,
            "on_cpu_ns": times.on_cpu_ns(),
            "blocked_ns": times.blocked_ns,
            "preempted_ns": times.preempted_ns,
            "queued_ns": times.queued_ns,
            "mean_ns": times.mean_ns(),
            "p50_ns": times.percentile_ns(0.5),
            "p99_ns": times.percentile_ns(0.99),
            "max_ns": times.longest.as_ref().map(|longest| longest.ns),
            "longest": longest,
            "histogram": histogram,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut value, measured) {
            all.extend(more);
        }
    }
    value
}

#[derive(Serialize)]
struct Line<'a> {
    name: Cow<'a, str>,
    cause: &'a str,
    cpu_ns: u64,
    samples: u64,
    percent: f64,
    calls: Option<u64>,
    errors: Option<u64>,
    wall_ns: Option<u64>,
}

/// Writes one CSV line per row.
pub(super) fn csv(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let unsampled: Vec<KernelRow> = unsampled(shown).collect();
    for row in shown.time.rows.iter().chain(&unsampled) {
        let account = of_row(shown, &row.name);
        csv.serialize(Line {
            name: field(&row.name),
            cause: row.cause.name(),
            cpu_ns: row.cost.weight,
            samples: row.cost.samples,
            percent: row.cost.percent_of(shown.time.whole),
            calls: account.map(|account| account.calls),
            errors: account.map(|account| account.failed),
            wall_ns: wall_ns(account),
        })?;
    }
    csv.flush()?;
    Ok(())
}
