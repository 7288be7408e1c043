//! The process report as JSON and CSV. Field names are stable; weights are in the event's unit.

use std::borrow::Cow;
use std::io::Write;

use anyhow::Result;
use plumb_analyze::Part;
use plumb_documents::procs::{self, accounted_ns};
use plumb_formats::csv::field;
use serde::Serialize;

use super::Shown;
use crate::terminal::Output;

/// Writes one JSON object. `parent` is an index in `programs`, where parents precede children.
pub(super) fn json(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    // A program without a line has no child with one.
    let lines = lines(shown);
    let mut document = procs::document(&shown.view, &shown.procs, &lines);
    document["advice"] = shown.advice.json(&shown.procs, |index| lines.binary_search(&index).ok()).into();
    plumb_formats::json::write(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// Indices of the programs with a line.
fn lines(shown: &Shown<'_>) -> Vec<usize> {
    (0..shown.procs.programs.len()).filter(|&index| shown.has_line(index)).collect()
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

/// Writes one CSV line per program, in the order and with the depth of the tree.
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
