//! CPU time by cause, as a complete table.

use plumb_analyze::{Cost, KernelRow, KernelTime, NodeId, View};
use serde_json::{Value, json};

/// Returns the table. `total_ns` is the sum of all rows except idle time. `stacks`: number of stacks per row.
pub fn document(view: &View<'_>, time: &KernelTime, stacks: usize) -> Value {
    let meta = view.meta();
    json!({
        "version": crate::JSON_VERSION,
        "command": meta.command,
        "recorder": meta.recorder,
        "duration_ns": meta.duration_ns,
        "frequency_hz": meta.frequency_hz,
        "samples": time.whole.samples,
        "lost_samples": meta.lost_samples,
        "total_ns": time.whole.weight,
        "user_ns": time.whole.weight.saturating_sub(time.kernel.weight),
        "kernel_ns": time.kernel.weight,
        "rusage_ns": time.accounted_ns,
        "off_percent": time.off_percent(),
        "is_time": time.is_time,
        "kernel_named": !time.nameless_kernel,
        "warnings": view.warnings(),
        "rows": time.rows.iter().map(|one| row(view, time, one, stacks)).collect::<Vec<_>>(),
    })
}

/// Returns a row.
pub fn row(view: &View<'_>, time: &KernelTime, row: &KernelRow, stacks: usize) -> Value {
    let kinds = row
        .kinds
        .iter()
        .map(|&(kind, cost)| json!({"name": kind, "cpu_ns": cost.weight, "samples": cost.samples}));
    let mut value = json!({
        "name": row.name,
        "cause": row.cause.name(),
        "cpu_ns": row.cost.weight,
        "samples": row.cost.samples,
        "percent": row.cost.percent_of(time.whole),
        "kinds": kinds.collect::<Vec<_>>(),
    });
    if stacks > 0 {
        let list = row.stacks.iter().take(stacks).map(|&(node, cost)| stack(view, node, cost));
        value["stacks"] = list.collect::<Vec<_>>().into();
    }
    value
}

fn stack(view: &View<'_>, node: NodeId, cost: Cost) -> Value {
    let frames: Vec<Value> =
        view.stack(node).map(|frame| json!({"function": frame.name, "file": frame.dso_path})).collect();
    json!({"samples": cost.samples, "cpu_ns": cost.weight, "leaf_first": frames})
}
