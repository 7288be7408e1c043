//! The tree of programs that ran.

use plumb_analyze::{Part, Procs, Program, Start, View};
use serde_json::{Map, Value, json};

/// Returns the programs with the indices `lines`, in order. `parent` is an index into `programs`, where parents come first.
pub fn document(view: &View<'_>, procs: &Procs<'_>, lines: &[usize]) -> Value {
    let meta = &view.profile().meta;
    let place = |index: usize| lines.binary_search(&index).ok();
    let programs: Vec<Value> = lines
        .iter()
        .filter_map(|&index| procs.programs.get(index))
        .map(|program| program_json(view, program, program.parent.and_then(place)))
        .collect();
    json!({
        "version": crate::JSON_VERSION,
        "command": meta.command,
        "recorder": meta.recorder,
        "span_ns": procs.span_ns,
        "event": procs.event,
        "unit": procs.unit,
        "samples": procs.whole.samples,
        "weight": procs.whole.weight,
        "processes": procs.processes,
        "most_alive": procs.most_alive,
        "lives_recorded": procs.has_lives,
        "kernel_named": !procs.nameless_kernel,
        "programs": programs,
    })
}

fn program_json(view: &View<'_>, program: &Program<'_>, parent: Option<usize>) -> Value {
    let parts: Map<String, Value> =
        Part::ALL.map(|part| (part.name().into(), program.part(part).weight.into())).into_iter().collect();
    json!({
        "parent": parent,
        "depth": program.depth,
        "exe": program.exe,
        "comm": program.comm,
        "forked": program.forked,
        "processes": program.processes,
        "most_alive": program.most_alive,
        "mean_life_ns": program.mean_life_ns,
        "short_processes": program.short.all,
        "total_weight": program.total.weight,
        "self_weight": program.own().weight,
        "self_samples": program.own().samples,
        "user_weight": program.part(Part::User).weight,
        "kernel_weight": program.in_kernel().weight,
        "parts": parts,
        "before_exec_weight": program.before_exec.weight,
        "accounted_ns": accounted_ns(program),
        "accounted_processes": program.accounted,
        "forks": program.forks,
        "peak_rss_bytes": program.peak_rss_bytes,
        "forking_weight": program.forking.weight,
        "forking_samples": program.forking.samples,
        "started_from_by_samples": program.starts.iter().map(|start| start_json(view, start)).collect::<Vec<_>>(),
    })
}

/// Returns the CPU time that the kernel accounted; `None` instead of 0 if it is not known.
pub fn accounted_ns(program: &Program<'_>) -> Option<u64> {
    (program.accounted > 0).then_some(program.accounted_ns)
}

fn start_json(view: &View<'_>, start: &Start) -> Value {
    let frames: Vec<Value> = start
        .node
        .into_iter()
        .flat_map(|node| view.stack(node))
        .map(|frame| json!({"function": frame.name, "file": frame.dso_path}))
        .collect();
    json!({"samples": start.cost.samples, "weight": start.cost.weight, "leaf_first": frames})
}
