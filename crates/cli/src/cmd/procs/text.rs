//! The process report as text.

use std::io::{self, Write};

use plumb_analyze::{Cost, Precision};
use plumb_documents::column::chosen;
use plumb_documents::procs::columns;

use super::{Args, Shown};
use crate::advice::processes;
use crate::render::duration::time;
use crate::render::label;
use crate::render::table::{self, Column, Layout};
use crate::terminal::{Output, printable};

pub(super) fn write(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    head(shown, out)?;
    if shown.procs.programs.is_empty() {
        return writeln!(out, "# nothing ran and nothing was sampled");
    }
    writeln!(out, "#")?;
    tree(shown, args, out)?;
    if shown.procs.whole.samples > 0 {
        means(shown, args, out)?;
    }
    starts(shown, args, out)?;
    shown.advice.write(&shown.procs, out)
}

fn head(shown: &Shown<'_>, out: &mut Output<'_>) -> io::Result<()> {
    let (procs, meta) = (&shown.procs, &shown.view.profile().meta);
    if !meta.command.is_empty() {
        writeln!(out, "# {}", printable(&meta.command.join(" ")))?;
    }
    if procs.has_lives {
        let seconds = procs.span_ns as f64 / 1e9;
        let alive = procs.most_alive.map_or(String::new(), |alive| format!("; at most {alive} at one time"));
        writeln!(out, "# processes: {} in {seconds:.3} s{alive}", procs.processes)?;
    } else {
        writeln!(
            out,
            "# processes: {} were sampled; how many ran is not known: the profile has no records of forks and exits",
            procs.processes
        )?;
    }
    writeln!(
        out,
        "# {}: {} by {}; what is below comes from samples but for counts and lives",
        printable(processes::weighed(&shown.procs)),
        processes::amount(&shown.procs, procs.whole.weight as f64),
        label::samples(procs.whole.samples)
    )?;
    if procs.nameless_kernel {
        writeln!(
            out,
            "# kernel functions have no names here: fork, exec, faults and exit are part of Kernel (`plumb doctor` says more)"
        )?;
    }
    Ok(())
}

/// Columns of the tree, before the program.
const TREE: &str =
    "total_weight self_weight user fork exec fault exit kernel processes most_alive mean_life_ns";
/// Columns of one process of each program, before the program.
const MEANS: &str = "self_weight user fork exec fault exit kernel before_exec forking";

/// Writes lines of numbers, each with its program at the end.
fn table(
    titles: &[&'static str],
    lines: &[Vec<String>],
    args: &Args,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let number = |&title: &&'static str| Column { title, layout: Layout::Number };
    let mut columns: Vec<Column> = titles.iter().map(number).collect();
    columns.push(Column { title: "Program", layout: Layout::Path });
    table::write(&columns, lines, args.full_names, out)
}

/// The tree of programs: shares of the total, and numbers of processes.
fn tree(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let procs = &shown.procs;
    let precision = Precision::of(&shown.view);
    let share = |weight| precision.percent(Cost { weight, samples: 0 }.percent_of(procs.whole));
    let (all, mut lines) = (columns(), Vec::new());
    let columns = chosen(&all, TREE);
    for (program, row) in shown.rows() {
        let mut cells: Vec<String> = columns.iter().map(|column| column.text(row, share)).collect();
        cells.push(format!("{}{}", "  ".repeat(program.depth), label::program(program, args.full_names)));
        lines.push(cells);
    }
    table(&columns.iter().map(|column| column.heading).collect::<Vec<_>>(), &lines, args, out)?;
    let hidden = procs.programs.len() - lines.len();
    if hidden > 0 {
        let own: u64 = shown.rows().map(|(program, _)| program.own().weight).sum();
        let rest = share(procs.whole.weight.saturating_sub(own));
        writeln!(out, "# {hidden} programs below {} %: {rest} in themselves", shown.min)?;
    }
    Ok(())
}

/// Average cost of one process, by program.
fn means(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let procs = &shown.procs;
    writeln!(
        out,
        "\n# {} of one process of each program, on average; Forking is what it cost its parent to make it",
        printable(processes::weighed(&shown.procs))
    )?;
    let (all, mut lines) = (columns(), Vec::new());
    let columns = chosen(&all, MEANS);
    let mut titles: Vec<&str> = columns.iter().map(|column| column.heading).collect();
    titles[0] = if procs.is_time { "CPU" } else { "All" };
    let with_accounts = procs.is_time && procs.programs.iter().any(|program| program.accounted > 0);
    if with_accounts {
        writeln!(
            out,
            "# Accounted is the kernel's own account of so many of them (Of): exact, where CPU is an estimate by samples"
        )?;
        titles.extend(["Accounted", "Of"]);
    }
    for (program, row) in shown.rows() {
        let cost = program.own().weight + program.forking.weight;
        if program.processes == 0 || cost == 0 {
            continue;
        }
        let each = |weight| match weight {
            0 => "-".into(),
            weight => mean(shown, weight, program.processes),
        };
        let mut cells: Vec<String> = columns.iter().map(|column| column.text(row, each)).collect();
        if with_accounts {
            let mean = match program.accounted {
                0 => "-".into(),
                count => time(program.accounted_ns as f64 / count as f64),
            };
            cells.extend([mean, program.accounted.to_string()]);
        }
        cells.push(label::program(program, args.full_names));
        lines.push(cells);
    }
    table(&titles, &lines, args, out)
}

/// The starting process and stack of each program.
fn starts(shown: &Shown<'_>, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let procs = &shown.procs;
    let mut told = false;
    for (program, _) in shown.rows() {
        let Some(parent) = program.parent.map(|parent| &procs.programs[parent]) else { continue };
        if program.forking.samples == 0 || args.stacks == 0 {
            continue;
        }
        if !told {
            writeln!(out, "\n# who started them, by the samples that hit parents while they forked")?;
            told = true;
        }
        let memory = match parent.peak_rss_bytes {
            Some(bytes) => format!(", whose memory was {:.1} MB at its peak", bytes as f64 / 1e6),
            None => String::new(),
        };
        writeln!(
            out,
            "{}: {} by {}{memory}; {}, {} each",
            label::program(program, args.full_names),
            if program.processes == 1 { "once".to_owned() } else { format!("{} times", program.processes) },
            label::program(parent, args.full_names),
            label::samples(program.forking.samples),
            mean(shown, program.forking.weight, program.processes)
        )?;
        let precision = Precision::of_part(&shown.view, program.forking);
        for start in program.starts.iter().take(args.stacks) {
            let frames = stack(shown, start.node, args.full_names);
            let share = precision.percent(start.cost.percent_of(program.forking));
            writeln!(out, "  {share:>6}  {frames}")?;
        }
        if let Some(more) = program.starts.len().checked_sub(args.stacks).filter(|&more| more > 0) {
            writeln!(out, "          and {more} more stacks")?;
        }
    }
    Ok(())
}

fn stack(shown: &Shown<'_>, node: Option<plumb_analyze::NodeId>, full: bool) -> String {
    node.map_or_else(|| "no user stack".into(), |node| label::stack(&shown.view, node, full))
}

/// The average amount per process, with decimals if there are fewer events than processes.
fn mean(shown: &Shown<'_>, weight: u64, count: u64) -> String {
    let each = weight as f64 / count.max(1) as f64;
    match shown.procs.unit {
        "ns" => time(each),
        _ if each < 10.0 => format!("{each:.2}"),
        _ => format!("{each:.0}"),
    }
}
