//! The process report for programs: JSON and CSV. Field names are stable; weights are in the event's unit.

use std::borrow::Cow;
use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Part, Program, Start};
use plumb_formats::csv::field;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Shown;
use crate::terminal::Output;

/// Writes one JSON object. `parent` is an index in `programs`, where parents come first.
pub(super) fn json(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    let (procs, meta) = (&shown.procs, &shown.view.profile().meta);
    // What has no line has no children with one.
    let lines = lines(shown);
    let place = |index: usize| lines.binary_search(&index).ok();
    let programs: Vec<Value> = lines
        .iter()
        .map(|&index| {
            let program = &procs.programs[index];
            program_json(shown, program, program.parent.and_then(place))
        })
        .collect();
    let advice = shown.advice.json(procs, place);
    let document = json!({
        "version": crate::render::JSON_VERSION,
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
        "advice": advice,
    });
    plumb_formats::json::write(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// Indexes of the programs that have a line.
fn lines(shown: &Shown<'_>) -> Vec<usize> {
    (0..shown.procs.programs.len()).filter(|&index| shown.has_line(index)).collect()
}

fn program_json(shown: &Shown<'_>, program: &Program<'_>, parent: Option<usize>) -> Value {
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
        "short_processes": program.short,
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
        "started_from_by_samples": program.starts.iter().map(|start| start_json(shown, start)).collect::<Vec<_>>(),
    })
}

/// Not 0 where nothing is known.
fn accounted_ns(program: &Program<'_>) -> Option<u64> {
    (program.accounted > 0).then_some(program.accounted_ns)
}

fn start_json(shown: &Shown<'_>, start: &Start) -> Value {
    let frames: Vec<Value> = start
        .node
        .into_iter()
        .flat_map(|node| shown.view.stack(node))
        .map(|frame| json!({"function": frame.name, "file": frame.dso_path}))
        .collect();
    json!({"samples": start.cost.samples, "weight": start.cost.weight, "leaf_first": frames})
}

#[derive(Serialize)]
struct Line<'a> {
    depth: usize,
    exe: Cow<'a, str>,
    comm: Cow<'a, str>,
    forked: bool,
    processes: u64,
    most_alive: Option<u64>,
    mean_life_ns: Option<f64>,
    total_weight: u64,
    self_weight: u64,
    user: u64,
    fork: u64,
    exec: u64,
    fault: u64,
    exit: u64,
    kernel: u64,
    before_exec: u64,
    forking: u64,
    forks: u64,
    peak_rss_bytes: Option<u64>,
    accounted_ns: Option<u64>,
    accounted_processes: u64,
}

/// Writes a line for each program, in the order and depth of the tree.
pub(super) fn csv(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let programs = shown.procs.programs.iter().enumerate().filter(|&(index, _)| shown.has_line(index));
    for (_, program) in programs {
        csv.serialize(Line {
            depth: program.depth,
            exe: field(program.exe),
            comm: field(program.comm),
            forked: program.forked,
            processes: program.processes,
            most_alive: program.most_alive,
            mean_life_ns: program.mean_life_ns,
            total_weight: program.total.weight,
            self_weight: program.own().weight,
            user: program.part(Part::User).weight,
            fork: program.part(Part::Fork).weight,
            exec: program.part(Part::Exec).weight,
            fault: program.part(Part::Fault).weight,
            exit: program.part(Part::Exit).weight,
            kernel: program.part(Part::Kernel).weight,
            before_exec: program.before_exec.weight,
            forking: program.forking.weight,
            forks: program.forks,
            peak_rss_bytes: program.peak_rss_bytes,
            accounted_ns: accounted_ns(program),
            accounted_processes: program.accounted,
        })?;
    }
    csv.flush()?;
    Ok(())
}
