//! The tree of programs that ran.

use std::collections::BTreeMap;

use plumb_analyze::{Part, Procs, Program, Start, View};
use serde_json::Value;

use crate::advice::ProcessAdviceJson;
use crate::column::{Column, Unit};
use crate::stack::FrameRow;

document! {
    /// The programs with the indices `lines`, in order, and sums over all of them. A parent of one of them is among them.
    pub struct ProcessesDocument<'p> as "ProcessesAnswer" of (view: &View<'p>, procs: &Procs<'p>, lines: &[usize]) {
        version: u32 = crate::JSON_VERSION,
        command: &'p [String] = &view.profile().meta.command,
        recorder: &'p str = &view.profile().meta.recorder,
        span_ns: u64 = procs.span_ns,
        event: &'p str = procs.event,
        unit: &'p str = procs.unit,
        samples: u64 = procs.whole.samples,
        weight: u64 = procs.whole.weight,
        processes: u64 = procs.processes,
        most_alive: Option<u64> = procs.most_alive,
        lives_recorded: bool = procs.has_lives,
        kernel_named: bool = !procs.nameless_kernel,
        /// Rows; parents come first.
        pub programs: Vec<ProgramRow<'p>> = rows(view, procs, lines),
        /// Advice, where a command gives any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(skip))]
        pub advice: Option<Vec<ProcessAdviceJson>> = None,
    }
}

document! {
    /// A program that one other program started. `parent` is an index in the rows.
    pub struct ProgramRow<'p> as "Program" of (view: &View<'p>, program: &Program<'p>, parent: Option<usize>) {
        parent: Option<usize> = parent,
        depth: usize = program.depth,
        exe: &'p str = program.exe,
        comm: &'p str = program.comm,
        forked: bool = program.forked,
        processes: u64 = program.processes,
        most_alive: Option<u64> = program.most_alive,
        mean_life_ns: Option<f64> = program.mean_life_ns,
        short_processes: u64 = program.short.all,
        forks: u64 = program.forks,
        peak_rss_bytes: Option<u64> = program.peak_rss_bytes,
        accounted_ns: Option<u64> = (program.accounted > 0).then_some(program.accounted_ns),
        accounted_processes: u64 = program.accounted,
        #[serde(flatten)]
        cost: ProgramCost = ProgramCost::new(program),
        started_from_by_samples: Vec<StartRow> = program.starts.iter().map(|start| StartRow::new(view, start)).collect(),
    }
}

document! {
    struct ProgramCost as "ProgramCost" of (program: &Program<'_>) {
        total_weight: u64 = program.total.weight,
        self_weight: u64 = program.own().weight,
        self_samples: u64 = program.own().samples,
        user_weight: u64 = program.part(Part::User).weight,
        kernel_weight: u64 = program.in_kernel().weight,
        parts: BTreeMap<&'static str, u64> = Part::ALL.map(|part| (part.name(), program.part(part).weight)).into(),
        before_exec_weight: u64 = program.before_exec.weight,
        forking_weight: u64 = program.forking.weight,
        forking_samples: u64 = program.forking.samples,
    }
}

document! {
    pub(crate) struct StartRow as "StartRow" of (view: &View<'_>, start: &Start) {
        samples: u64 = start.cost.samples,
        weight: u64 = start.cost.weight,
        leaf_first: Vec<FrameRow> = start.node.map_or(Vec::new(), |node| FrameRow::of_stack(view, node)),
    }
}

fn rows<'p>(view: &View<'p>, procs: &Procs<'p>, lines: &[usize]) -> Vec<ProgramRow<'p>> {
    let place = |index: usize| lines.binary_search(&index).ok();
    let programs = lines.iter().filter_map(|&index| procs.programs.get(index));
    programs.map(|program| ProgramRow::new(view, program, program.parent.and_then(place))).collect()
}

impl ProgramRow<'_> {
    fn part(&self, part: Part) -> Value {
        self.cost.parts.get(part.name()).copied().into()
    }
}

/// Returns the columns of the programs.
pub fn columns<'p>() -> [Column<ProgramRow<'p>>; 21] {
    use Unit::{Plain, Time, Weight};
    [
        Column::new("depth", |row| row.depth.into()),
        Column::new("exe", |row| row.exe.into()),
        Column::new("comm", |row| row.comm.into()),
        Column::new("forked", |row| row.forked.into()),
        Column::headed("processes", "Processes", Plain, |row| row.processes.into()),
        Column::headed("most_alive", "Alive", Plain, |row| row.most_alive.into()),
        Column::headed("mean_life_ns", "Life", Time, |row| row.mean_life_ns.into()),
        Column::headed("total_weight", "Total", Weight, |row| row.cost.total_weight.into()),
        Column::headed("self_weight", "Self", Weight, |row| row.cost.self_weight.into()),
        Column::headed("user", "User", Weight, |row| row.part(Part::User)),
        Column::headed("fork", "Fork", Weight, |row| row.part(Part::Fork)),
        Column::headed("exec", "Exec", Weight, |row| row.part(Part::Exec)),
        Column::headed("fault", "Faults", Weight, |row| row.part(Part::Fault)),
        Column::headed("exit", "Exit", Weight, |row| row.part(Part::Exit)),
        Column::headed("kernel", "Kernel", Weight, |row| row.part(Part::Kernel)),
        Column::headed("before_exec", "Before exec", Weight, |row| row.cost.before_exec_weight.into()),
        Column::headed("forking", "Forking", Weight, |row| row.cost.forking_weight.into()),
        Column::new("forks", |row| row.forks.into()),
        Column::new("peak_rss_bytes", |row| row.peak_rss_bytes.into()),
        Column::new("accounted_ns", |row| row.accounted_ns.into()),
        Column::headed("accounted_processes", "Of", Plain, |row| row.accounted_processes.into()),
    ]
}
