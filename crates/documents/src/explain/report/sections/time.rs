//! The first sections: elapsed time, and the distribution of the time.

use plumb_analyze::{BoundBy, Cause, Cost, Explanation, ModuleKind, Precision, RunSummary, cut_middle};
use plumb_profile::{FrameKind, QueuedThread};

use super::figures::{amount, interval, percent};
use crate::duration::time;
use crate::explain::headline::whole;
use crate::explain::places::file_name;
use crate::explain::report::ReportContext;
use crate::label;
use crate::sections::Layout;
use crate::sections::{Block, ReportSection};
use crate::text::Text;

/// Rows below this share, in percent, are summed up.
const LEAST_PERCENT: f64 = 0.5;
/// Smallest run-queue wait that is reported, in percent of the elapsed time.
const HELD_UP_FROM: f64 = 5.0;
/// Longest file name.
const FILE_WIDTH: usize = 24;

/// Section 1.
pub(super) fn pace(report: &Explanation<'_>) -> ReportSection {
    let pace = &report.pace;
    let mut section = ReportSection::new("Time");
    let account = if pace.is_accounted { "as the kernel accounts it" } else { "as samples stand for it" };
    let mut facts: Vec<(String, Text)> =
        vec![("elapsed".into(), pace.elapsed_ns.map_or("not known".to_owned(), |ns| time(ns as f64)).into())];
    let cpu = match (pace.cpu_ns, report.untold) {
        (Some(ns), _) => format!("{}, {account}", time(ns as f64)),
        (None, Some(_)) => "not known: the file doesn't tell what it counts".to_owned(),
        (None, None) => "not known".to_owned(),
    };
    facts.push(("processor time".into(), cpu.into()));
    if let Some(cores) = pace.cores() {
        let of = if pace.cpus > 0 { format!(" of {}", pace.cpus) } else { String::new() };
        facts.push(("processors used".into(), format!("{cores:.2}{of}, on average").into()));
    }
    let kernel = pace.kernel_percent;
    let parts = match tells_kernel(report) {
        true => format!(
            "{} in user code, {} in the kernel",
            percent(report, 100.0 - kernel),
            percent(report, kernel)
        ),
        false if report.view.part().samples == 0 => "not known: there are no samples".to_owned(),
        false if pace.user_only => {
            let least = percent(report, 100.0 - kernel);
            format!("{least} in user code that was sampled; the kernel wasn't, and may have the rest")
        }
        false => "the file doesn't tell the kernel from user code".to_owned(),
    };
    facts.push(("user and kernel".into(), parts.into()));
    if !pace.is_machine {
        facts.push(("run-queue wait".into(), waited(pace).into()));
        facts.extend(pace.busiest().map(|thread| ("busiest thread".into(), split_of(pace, thread))));
    }
    let class = pace.class();
    facts.push(("class".into(), class.map_or_else(|| unknown(pace), |class| class.name().to_owned()).into()));
    section.blocks.push(Block::Facts(facts));
    if let Some(text) = held_up(pace) {
        section.say(text);
    }
    if let (Some(BoundBy::Waiting), Some((_, most))) = (class, pace.wanted()) {
        let most = format!("{:.1}%", (most * 100.0).min(100.0));
        section.say(format!(
            "For most of the time it sleeps, waiting for something: less processor time can save {most} of the elapsed time at most."
        ));
    }
    section.note(format!("Class: {}.", pace.rule()));
    section
}

/// The run-queue wait of threads.
fn waited(pace: &RunSummary) -> String {
    let Some((least, most)) = pace.waited_ns() else {
        return "not known: the recording doesn't tell it, or not of a part".to_owned();
    };
    let shown = |ns: u64| time(ns as f64);
    let text = match shown(least) == shown(most) {
        true => format!("{}, all threads together", shown(least)),
        false => format!(
            "{} to {}, all threads together: some ended before they could be asked",
            shown(least),
            shown(most)
        ),
    };
    match pace.queued.as_ref().map_or(0, |queued| queued.stolen_ns) {
        0 => text,
        stolen => format!("{text}; the hypervisor took {} from the machine", shown(stolen)),
    }
}

/// The distribution of a thread's lifetime.
fn split_of(pace: &RunSummary, thread: &QueuedThread) -> Text {
    let part = |ns: u64| Precision::TENTHS.percent(ns as f64 * 100.0 / thread.lived_ns.max(1) as f64);
    let known = thread.ran_ns.saturating_add(thread.waited_ns).saturating_add(thread.unseen_ns);
    let stolen = pace.queued.as_ref().is_some_and(|queued| queued.stolen_ns > 0);
    let asleep = if stolen { "asleep or stolen by the hypervisor" } else { "asleep" };
    let mut text = format!(
        " ({}): of {}: on a CPU {}, run-queue wait {}, {asleep} {}",
        thread.tid,
        time(thread.lived_ns as f64),
        part(thread.ran_ns),
        part(thread.waited_ns),
        part(thread.lived_ns.saturating_sub(known)),
    );
    if thread.unseen_ns > 0 {
        text.push_str(&format!(", and {} was not seen", part(thread.unseen_ns)));
    }
    Text::default().name(&thread.comm).and(text)
}

/// The reason that kept the busiest thread off the CPU, if that was long.
fn held_up(pace: &RunSummary) -> Option<String> {
    let more = pace.busiest()?.waited_ns as f64 * 100.0 / pace.elapsed_ns? as f64;
    let by = match pace.is_held_up_by_others() {
        true => "others had the processor",
        false => "others, or its own other threads, had the processors",
    };
    let limit = match pace.queued.as_ref()?.throttled_ns {
        Some(0) => String::new(),
        Some(ns) => format!(" The CPU limit of its control group stopped it for {}.", time(ns as f64)),
        None => {
            " A CPU limit of its control group would show as such waiting too; none could be read.".into()
        }
    };
    (more >= HELD_UP_FROM)
        .then(|| format!("Its busiest thread could have run {more:.0}% more of the time: {by}.{limit}"))
}

/// The known facts if the class is unknown.
fn unknown(pace: &RunSummary) -> String {
    let Some(cores) = pace.cores() else {
        let missing = if pace.cpu_ns.is_none() { "processor time" } else { "elapsed time" };
        return format!("not known, as the {missing} isn't");
    };
    if pace.is_busy() {
        return "not known: it runs, but the kernel wasn't sampled, and may have much of it".to_owned();
    }
    match pace.wanted() {
        None => format!(
            "not known: {cores:.2} of a processor was used, and whether the rest was sleep or waiting for a processor isn't"
        ),
        Some((least, most)) => {
            format!("not known: between {least:.2} and {most:.2} of a processor was used or waited for")
        }
    }
}

/// Whether there are samples, with the kernel's part marked.
pub(in crate::explain::report) fn tells_kernel(report: &Explanation<'_>) -> bool {
    let frames = &report.view.profile().frames;
    report.view.part().samples > 0
        && (report.untold.is_none() && !report.pace.user_only
            || frames.iter().any(|(_, frame)| frame.kind == FrameKind::Kernel))
}

/// Section 2.
pub(super) fn split(report: &Explanation<'_>, context: &ReportContext<'_>) -> ReportSection {
    let title = match report.untold {
        None => "Where processor time went",
        Some(_) => "Where what is counted went",
    };
    let mut section = ReportSection::new(title);
    left_out(report, context, &mut section);
    let whole = report.time.whole;
    let line = |cost: Cost, name: String| {
        let share = report.sampling.share(cost);
        vec![percent(report, share.percent), interval(report, share), amount(report, cost), name]
    };
    let mut lines = Vec::new();
    let mut rest = Cost::default();
    for row in report.time.rows.iter().filter(|row| row.cause != Cause::Idle) {
        if row.cost.percent_of(whole) < LEAST_PERCENT {
            rest += row.cost;
            continue;
        }
        let is_told = row.cause != Cause::User || report.untold.is_none() || tells_kernel(report);
        let name = if is_told { label::cause(row.cause, &row.name) } else { "user code or the kernel" };
        lines.push(line(row.cost, name.to_owned()));
        if row.cause == Cause::User {
            let modules =
                report.modules.iter().filter(|module| module.cost.percent_of(whole) >= LEAST_PERCENT);
            lines.extend(modules.map(|module| line(module.cost, format!("  {}", module_text(module)))));
        }
    }
    if rest.samples > 0 {
        lines.push(line(rest, "the rest, each below 0.5%".to_owned()));
    }
    let columns = [
        ("Share", Layout::Number),
        ("95% interval", Layout::Number),
        (if report.time.is_time { "CPU time" } else { "Counted" }, Layout::Number),
        ("Went into", Layout::Word),
    ];
    section.table(&columns, lines);
    closing(report, &mut section);
    section
}

fn module_text(module: &plumb_analyze::Module<'_>) -> String {
    let kind = match module.kind {
        ModuleKind::Program => "the program",
        ModuleKind::CLibrary => "the C library",
        ModuleKind::Library => "libraries",
        ModuleKind::Script => "interpreted functions",
        ModuleKind::Memory => "code in no file",
        ModuleKind::Unknown => "not known",
    };
    let files = module.files.iter().map(|(path, _)| file_name(path)).filter(|name| !name.is_empty());
    let mut files = files.map(|name| cut_middle(name, FILE_WIDTH));
    match (files.next(), files.count()) {
        (None, _) => kind.to_owned(),
        (Some(first), 0) => format!("{kind}: {first}"),
        (Some(first), more) => format!("{kind}: {first} and {more} more"),
    }
}

/// The base of the shares, if they exclude samples.
fn left_out(report: &Explanation<'_>, context: &ReportContext<'_>, section: &mut ReportSection) {
    if report.left_out.samples == 0 {
        return;
    }
    let recorded = report.view.recorded();
    let patterns = context.ignore;
    let mut text = Text::default();
    if patterns.is_empty() {
        text = text.and("Filters left out ");
    } else {
        text = text.name(format!("--ignore {}", patterns.join(" --ignore "))).and(" left out ");
    }
    section.say(text.and(format!(
        "{} of {} ({}). All that follows is of the rest: shares are of {}, made to be 100%.",
        percent(report, report.left_out.percent_of(recorded)),
        whole(report),
        amount(report, report.left_out),
        amount(report, report.view.part())
    )));
}

/// The reason why they are less.
fn watched(report: &Explanation<'_>, off: f64) -> &'static str {
    match report.quality.is_partly_left_out && off < 0.0 {
        true => "; what was sampled while system calls were watched is left out",
        false => "",
    }
}

/// States whether the rows add up to the total.
fn closing(report: &Explanation<'_>, section: &mut ReportSection) {
    let sum = amount(report, report.time.whole);
    let text = match (report.time.accounted_ns, report.time.off_percent()) {
        (Some(accounted), Some(off)) if report.left_out.samples == 0 => {
            let side = if off < 0.0 { "less" } else { "more" };
            let accounted = time(accounted as f64);
            format!(
                "The rows are all samples, {sum}: {:.1}% {side} than the kernel accounts for ({accounted}){}.",
                off.abs(),
                watched(report, off)
            )
        }
        _ => format!("The rows are all samples that are looked at, {sum}."),
    };
    section.note(text);
    if report.time.nameless_kernel {
        section.note(
            "Kernel functions have no names here: what the kernel did can't be told. As root, or with sysctl kernel.kptr_restrict=0, \
             it can.",
        );
    }
}
