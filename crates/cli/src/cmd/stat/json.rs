//! The result as JSON.

use std::ffi::OsString;

use anyhow::Result;
use plumb_analyze::{CONFIDENCE, Median, Share};
use plumb_capture_perf::Code;
use plumb_stat_runner::RunSet;
use serde_json::{Map, Value, json};

use crate::terminal::Output;

/// Writes each figure with its values, in the order of the runs.
pub(super) fn write(gathered: &RunSet, command: &[OsString], out: &mut Output<'_>) -> Result<()> {
    let metrics: Map<String, Value> = gathered
        .values()
        .filter_map(|(metric, values)| {
            let Median { value, low, high, confidence } = Median::of(&values, CONFIDENCE)?;
            let figure = json!({
                "median": value, "low": low, "high": high, "confidence": confidence, "values": values,
            });
            Some((metric.name.to_owned(), figure))
        })
        .collect();
    let (threads, untold) = gathered.threads();
    let threads: Vec<Value> = threads
        .iter()
        .map(|row| json!({ "comm": row.comm, "threads": row.threads, "cpu_ns": row.cpu_ns }))
        .collect();
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let statuses: Vec<u8> =
        gathered.runs.iter().map(|run| crate::exit::Exit::of_status(run.status).code()).collect();
    let result = json!({
        "version": plumb_documents::JSON_VERSION,
        "command": words,
        "runs": gathered.runs.len(),
        "exit_statuses": statuses,
        "metrics": metrics,
        "modes": modes(gathered),
        "threads": threads,
        "threads_not_told_apart_ns": untold,
        "counted_code": gathered.counted_code().map(|code| if code == Code::User { "user" } else { "all" }),
        "counting_calls_share": gathered.calls_cost(),
        "missing": gathered.missing,
    });
    Ok(plumb_documents::json::write_pretty(&result, out)?)
}

/// The split of CPU time; the kernel's tick-based split is given only alongside the sampled one.
fn modes(gathered: &RunSet) -> Option<Value> {
    let [kernel, all] = gathered.kernel_samples();
    let [user_ns, system_ns] = gathered.tick_ns();
    let share = Share::of_samples(kernel, all)?;
    Some(json!({
        "kernel_share": share.percent / 100.0,
        "low": share.low / 100.0,
        "high": share.high / 100.0,
        "samples": all,
        "samples_kernel": kernel,
        "tick_user_ns": user_ns,
        "tick_system_ns": system_ns,
    }))
}
