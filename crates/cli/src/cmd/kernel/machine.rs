//! The table of kernel time as JSON and CSV. Field names are stable.

use anyhow::Result;
use plumb_analyze::{Cause, Cost, Filter, KernelRow};
use plumb_call_watch::CallFindings;
use plumb_documents::column::write_csv;
use plumb_documents::json;
use plumb_documents::kernel::{KernelDocument, KernelTimeRow, columns};
use plumb_syscalls::gives_bytes;
use serde_json::{Map, Value, json};

use super::calls::error_name;
use super::counted::{Call, Counted};
use super::{Args, Shown};
use crate::advice::{self, processes};
use crate::terminal::Output;

/// Writes one JSON object; unmeasured values are null.
pub(super) fn json(
    shown: &Shown<'_>,
    calls: Option<&CallFindings>,
    filter: &Filter,
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let mut document = document(shown, args.stacks.unwrap_or(0));
    if let Some(calls) = calls {
        let mut advice = advice::json(calls);
        advice["processes"] = processes::json(shown.view.profile(), filter).into();
        document.more.insert("advice".into(), advice);
    }
    if let Some(counted) = &shown.counted {
        counted_json(counted, &mut document.more);
    }
    Ok(json::write(&document, &mut *out)?)
}

/// Writes one CSV line per row.
pub(super) fn csv(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    match document(shown, 0).rows {
        rows if rows.is_empty() => Ok(()),
        rows => Ok(write_csv(&columns(), &rows, out)?),
    }
}

/// The table, with rows of calls that have no sample.
fn document<'a>(shown: &'a Shown<'_>, stacks: usize) -> KernelDocument<'a> {
    let mut document = KernelDocument::new(&shown.view, &shown.time, stacks);
    let counted = shown.counted.as_ref();
    let unsampled = counted.into_iter().flat_map(|counted| counted.unsampled(|name| shown.has_row(name)));
    let row = |(name, cause): (&str, Cause)| KernelRow {
        name: name.to_owned(),
        cause,
        cost: Cost::default(),
        kinds: Vec::new(),
        stacks: Vec::new(),
    };
    document.rows.extend(unsampled.map(|one| KernelTimeRow::new(&shown.view, &shown.time, &row(one), 0)));
    document.rows.iter_mut().for_each(|row| row.count(|name| counted?.of_row(name)));
    document
}

/// Adds the counts that belong to no row.
fn counted_json(counted: &Counted, document: &mut Map<String, Value>) {
    let (events, tax) = (counted.events, counted.tax);
    document.insert("calls".into(), counted.calls.iter().map(call_json).collect());
    let sums = json!({
        "minor_faults": events.minor_faults,
        "major_faults": events.major_faults,
        "voluntary_switches": events.voluntary_switches,
        "involuntary_switches": events.involuntary_switches,
        "ended_threads": events.ended,
        "lost_calls": events.lost,
        "missed_calls": events.skipped,
    });
    let overhead = json!({
        "null_call_ns": tax.bare_ns,
        "each_call_of_others_ns": tax.others_ns(),
        "each_counted_call_ns": tax.own_ns(),
        "floor_ns": counted.is_timed.then(|| tax.floor_ns()),
    });
    document.extend([("events".into(), sums), ("tax".into(), overhead)]);
    if !counted.groups.is_empty() {
        let groups = counted.groups.iter().map(|group| {
            let calls: Vec<Value> = group.calls.iter().map(call_json).collect();
            json!({"id": group.id, "name": group.name, "calls": calls})
        });
        document.insert("groups".into(), groups.collect());
    }
}

fn call_json(call: &Call) -> Value {
    let account = &call.account;
    let error = |(&number, &count): (&u32, &u64)| (error_name(number).into_owned(), count.into());
    let errors: Map<String, Value> = account.errors.iter().map(error).collect();
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
