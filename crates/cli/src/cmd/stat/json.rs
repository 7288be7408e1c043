//! The result as JSON.

use std::ffi::OsString;

use anyhow::Result;
use plumb_analyze::Median;
use plumb_capture_perf::Code;
use serde_json::{Map, Value, json};

use super::gather::{Gathered, Share};
use super::text::CONFIDENCE;
use crate::terminal::Output;

/// Writes each figure with its values, in the order of the runs.
pub(super) fn write(gathered: &Gathered, command: &[OsString], out: &mut Output<'_>) -> Result<()> {
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
    let kernel = gathered.kernel();
    let sampled = kernel.map(|share| modes(gathered, &share));
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let statuses: Vec<u8> =
        gathered.runs.iter().map(|run| crate::exit::Exit::of_status(run.status).code()).collect();
    let result = json!({
        "version": plumb_documents::JSON_VERSION,
        "command": words,
        "runs": gathered.runs.len(),
        "exit_statuses": statuses,
        "metrics": metrics,
        "modes": sampled,
        "threads": threads,
        "threads_not_told_apart_ns": untold,
        "counted_code": gathered.counted_code().map(|code| if code == Code::User { "user" } else { "all" }),
        "counting_calls_share": gathered.calls_cost(),
        "missing": gathered.missing,
    });
    Ok(plumb_documents::json::write_pretty(&result, out)?)
}

/// The split of CPU time; the kernel's tick-based split is given only alongside the sampled one.
fn modes(gathered: &Gathered, kernel: &Share) -> Value {
    let sum = |part: fn(&plumb_process::usage::CpuTime) -> std::time::Duration| -> u64 {
        gathered.runs.iter().map(|run| part(&run.usage.cpu).as_nanos() as u64).sum()
    };
    json!({
        "kernel_share": kernel.value(),
        "low": kernel.low,
        "high": kernel.high,
        "samples": kernel.samples.1,
        "samples_kernel": kernel.samples.0,
        "tick_user_ns": sum(|cpu| cpu.user),
        "tick_system_ns": sum(|cpu| cpu.system),
    })
}
