//! The one-screen answer: what is slow, why, where, what to do, the possible gain, and the quality of the data.
//!
//! Based on the same analysis as the sections of the full report, which `--full` shows.

use plumb_analyze::{
    Bottleneck, BoundBy, CodeAdvice, Cost, Explanation, FrameIndex, HotFunction, command_failure,
};
use plumb_profile::DsoKind;

use super::sections::{cell, tells_kernel};
use super::{ReportContext, calls, title, waits};
use crate::duration::time;
use crate::explain::HotFunctions;
use crate::explain::headline::{gain, headline, short_percent, whole};
use crate::explain::places;
use crate::explain::places::name;
use crate::label;
use crate::sections::Layout;
use crate::sections::{Block, ReportSection, SectionedReport};
use crate::text::Text;

/// Most functions and further causes listed.
const FUNCTIONS: usize = 5;
const FURTHER: usize = 3;
/// Most functions of a cause, and most places, that are named.
const NAMED: usize = 3;
/// Smallest run-queue wait that is reported, as a fraction of the elapsed time.
const MUCH_WAITED: f64 = 0.1;

/// Returns the report on one screen.
pub fn document(
    report: &Explanation<'_>,
    code: &HotFunctions,
    context: &ReportContext<'_>,
) -> SectionedReport {
    let mut section = ReportSection::new("");
    section.blocks.extend(failure(report).map(Block::Strong));
    let gap = report.view.profile().meta.coverage_gap();
    gap.into_iter().for_each(|gap| section.say(format!("{gap}.")));
    section.blocks.push(Block::Strong(headline(report).and(&*context.names_remedy)));
    let facts = facts(report, context);
    if !facts.is_empty() {
        section.blocks.push(Block::Facts(facts));
    }
    waits::say(report, context, &mut section);
    further(report, &mut section);
    functions(report, &mut section);
    let mut last = Vec::new();
    last.extend(left_out(report, context.ignore).map(|text| ("left out".into(), text)));
    last.extend(context.lacks.iter().cloned());
    last.extend([("data".into(), data(report)), ("more".into(), more(report, code, context))]);
    section.blocks.push(Block::Facts(last));
    SectionedReport { title: title::of(report, context.file), summary: pace(report), sections: vec![section] }
}

/// Elapsed time and CPU time.
fn pace(report: &Explanation<'_>) -> Text {
    let pace = &report.pace;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(pace.elapsed_ns.map(|ns| format!("{} elapsed", time(ns as f64))));
    parts.extend(pace.cpu_ns.map(|ns| format!("{} CPU time", time(ns as f64))));
    if tells_kernel(report) && pace.kernel_percent >= 1.0 {
        parts.push(format!("{} in the kernel", short_percent(pace.kernel_percent)));
    }
    parts.extend(run_queue_wait(report));
    parts.extend(pace.class().map(|class| class.name().to_owned()));
    parts.join(", ").into()
}

/// The run-queue wait and its possible causes, if it is a large part of the elapsed time.
fn run_queue_wait(report: &Explanation<'_>) -> Option<String> {
    let pace = &report.pace;
    let ((waited, _), elapsed) = (pace.waited_ns()?, pace.elapsed_ns?);
    let is_much = waited as f64 >= MUCH_WAITED * elapsed as f64;
    let throttled = pace.queued.as_ref().and_then(|queued| queued.throttled_ns);
    let mut whose: Vec<String> = Vec::new();
    // Throttled time is caused by the cgroup's own limit.
    if pace.is_held_up_by_others() && throttled.is_none_or(|ns| ns.saturating_mul(2) < waited) {
        whose.push("other programs had the processors".into());
    }
    match throttled {
        Some(ns) if ns > 0 => {
            whose.push(format!("the CPU limit of its control group stopped it for {}", time(ns as f64)));
        }
        None if !whose.is_empty() => whose.push("or a CPU limit of its control group, unknown here".into()),
        _ => {}
    }
    let whose = if whose.is_empty() { String::new() } else { format!(" ({})", whose.join(", ")) };
    is_much.then(|| format!("{} run-queue wait{whose}", time(waited as f64)))
}

/// Returns a sentence, without its end, on the failure of the command: it may not have done the work to be measured.
pub(super) fn failure(report: &Explanation<'_>) -> Option<Text> {
    let failure = command_failure(&report.view.profile().meta)?;
    Some(format!("The {}", failure.strip_prefix("the ").unwrap_or(&failure)).into())
}

/// The facts that support the headline.
fn facts(report: &Explanation<'_>, context: &ReportContext<'_>) -> Vec<(String, Text)> {
    let mut facts: Vec<(String, Text)> = Vec::new();
    if let Some(index) = report.waiting_rule() {
        calls::facts(report, index, &mut facts);
        return facts;
    }
    if report.saved_at_most().is_some() {
        if waits::are_known(report, context) {
            return facts;
        }
        facts.push(("do".into(), waits::how_to_see(report, context)));
        return facts;
    }
    let Some((what, _)) = report.first() else { return facts };
    match what {
        Bottleneck::Code(index) => {
            let cause = &report.causes[index];
            facts.push(("evidence".into(), evidence(report, cause)));
            if let Some(callers) = wheres(report, cause) {
                facts.push(("where".into(), callers));
            }
            match cause.is_activity {
                true => {
                    facts.push(("do".into(), format!("if it can be avoided: {}", cause.rule.remedy).into()))
                }
                false => facts.push(("do".into(), cause.rule.remedy.into())),
            }
            facts.push(("gain".into(), gain(report, what)));
        }
        Bottleneck::Line(index) => {
            facts.push(("calls".into(), costs(report, &report.outlook.lines[index].calls)));
            if let Some(index) = report.contended() {
                calls::contention(report, index, &mut facts);
                return facts;
            }
            facts.push(("cause".into(), "not known: no rule holds for what it calls".into()));
        }
        Bottleneck::Calls(index) => calls::facts(report, index, &mut facts),
        Bottleneck::Processes(index) => {
            let advice = &report.processes[index];
            facts.push(("evidence".into(), advice.rule.pattern.into()));
            facts.push(("do".into(), advice.rule.remedy.into()));
            facts.push(("gain".into(), gain(report, what)));
        }
        Bottleneck::Function(frame) if !report.view.frame(frame).named => {
            facts.extend(nameless(&(context.names_of)(frame)));
        }
        Bottleneck::Function(frame) => facts.extend(unknown(report, frame, context)),
        Bottleneck::Kernel(_) => {
            facts.push(("do".into(), Text::from("see its calls: ").name(&context.commands.kernel)));
        }
    }
    facts
}

/// The facts on a function that no rule applies to.
fn unknown(report: &Explanation<'_>, frame: FrameIndex, context: &ReportContext<'_>) -> Vec<(String, Text)> {
    let mut facts = Vec::new();
    if let Some(index) = report.contended() {
        calls::contention(report, index, &mut facts);
        return facts;
    }
    if let Some(index) = report.instructions_of(frame) {
        let cause = &report.causes[index];
        let share = short_percent(cause.share.percent);
        facts.push(("cause".into(), format!("it {}: {share} of {}", cause.rule.claim, whole(report)).into()));
        facts.push(("do".into(), cause.rule.remedy.into()));
        facts.push(("gain".into(), gain(report, Bottleneck::Code(index))));
        return facts;
    }
    facts.push(("cause".into(), "none that is known: no rule holds for its code".into()));
    let text = match has_instructions(report, frame) {
        true => Text::from("see its instructions: ")
            .name((context.commands.annotate)(&places::with_code(report, frame))),
        false => Text::from("see its lines and callers: ").name(&context.commands.full),
    };
    facts.push(("do".into(), text));
    facts
}

/// Returns the facts about code without names: that its cause is unknown, and how to get names.
fn nameless(remedy: &str) -> Vec<(String, Text)> {
    let mut facts = vec![("cause".to_owned(), Text::from("not known: without names no rule holds"))];
    match remedy.strip_prefix("none: ") {
        Some(why) => facts.push(("names".into(), Text::from("not available: ").and(why))),
        None if remedy.is_empty() => {}
        None => facts.push(("do".into(), Text::from("get names: ").and(remedy))),
    }
    facts
}

/// Whether a function is code of the processor's, in a file.
fn has_instructions(report: &Explanation<'_>, frame: FrameIndex) -> bool {
    let dso = report.view.frame(frame).dso.map(|dso| report.view.profile().dsos[dso].kind);
    !matches!(dso, Some(DsoKind::Script | DsoKind::Anonymous { .. }))
}

fn evidence(report: &Explanation<'_>, cause: &CodeAdvice) -> Text {
    if let Some(finding) = cause.loops.first() {
        return crate::explain::loops::sentence(finding).into();
    }
    costs(report, &cause.functions)
}

/// A few functions with their shares.
fn costs(report: &Explanation<'_>, functions: &[(FrameIndex, Cost)]) -> Text {
    let mut text = Text::default();
    for (index, &(frame, cost)) in functions.iter().take(NAMED).enumerate() {
        let percent = short_percent(cost.percent_of(report.sampling.whole()));
        text = text
            .and(if index > 0 { ", " } else { "" })
            .name(name(&report.view, frame))
            .and(format!(" {percent}"));
    }
    text
}

/// The places in user code, if there are several.
fn wheres(report: &Explanation<'_>, cause: &CodeAdvice) -> Option<Text> {
    if cause.places.len() < 2 {
        return None;
    }
    let mut text = Text::default();
    for (index, &(frame, cost)) in cause.places.iter().take(NAMED).enumerate() {
        let percent = short_percent(cost.percent_of(cause.cost));
        let line = places::line(report, frame).unwrap_or_default();
        text = text.and(if index > 0 { ", " } else { "" }).name(name(&report.view, frame));
        text = text.and(" ").name(line).and(format!(" {percent}"));
    }
    Some(text)
}

/// Other causes, one per line.
fn further(report: &Explanation<'_>, section: &mut ReportSection) {
    let first = match report.first() {
        Some((Bottleneck::Code(index), _)) => Some(index),
        Some((Bottleneck::Function(frame), _)) => report.instructions_of(frame),
        _ => None,
    };
    let others = report
        .causes
        .iter()
        .enumerate()
        .filter(|&(index, cause)| Some(index) != first && cause.within.is_none());
    let lines: Vec<(String, Text)> = others
        .filter(|(_, cause)| cause.share.low >= report.outlook.threshold / 2.0)
        .take(FURTHER)
        .map(|(index, cause)| {
            let text = places::of_cause(report, cause).unwrap_or_default().and(" ").and(cause.rule.claim);
            let text = match cause.is_activity {
                true => text,
                false => text.and("; gain ").text(gain(report, Bottleneck::Code(index))),
            };
            (short_percent(cause.share.percent), text)
        })
        .collect();
    if !lines.is_empty() {
        section.blocks.push(Block::Heading("Also".into()));
        section.blocks.push(Block::Facts(lines));
    }
}

/// The functions with the largest self time.
fn functions(report: &Explanation<'_>, section: &mut ReportSection) {
    let line = |function: &HotFunction| {
        vec![
            short_percent(function.own_share.percent),
            short_percent(function.total_share.percent),
            cell(&report.view, function.frame, function.inlined),
            places::hottest(report, function),
        ]
    };
    let lines: Vec<_> = report.functions.iter().take(FUNCTIONS).map(line).collect();
    if lines.is_empty() {
        return;
    }
    section.say("");
    let columns = [
        ("Self", Layout::Number),
        ("Children", Layout::Number),
        ("Function", Layout::Function),
        ("Hottest line", Layout::Path),
    ];
    section.table(&columns, lines);
    section.say("");
}

/// Samples excluded by filters, which are in no share.
fn left_out(report: &Explanation<'_>, patterns: &[String]) -> Option<Text> {
    if report.left_out.samples == 0 {
        return None;
    }
    let filters = match patterns.is_empty() {
        true => Text::from("filters"),
        false => Text::default().name(format!("--ignore {}", patterns.join(" --ignore "))),
    };
    let share = short_percent(report.left_out.percent_of(report.view.recorded()));
    Some(filters.and(format!(": {share} of {}; shares are of the rest", whole(report))))
}

/// The quality of the data, in one line.
fn data(report: &Explanation<'_>) -> Text {
    let (quality, meta) = (&report.quality, &report.view.profile().meta);
    let mut parts = vec![label::samples(report.view.part().samples)];
    if meta.lost_samples > 0 {
        parts.push(format!("{} lost", meta.lost_samples));
    }
    parts
        .extend(quality.stacks.complete_percent().map(|percent| format!("{percent:.0}% of stacks complete")));
    if quality.nameless_share.percent >= 1.0 {
        parts.push(format!("{} without names", short_percent(quality.nameless_share.percent)));
    }
    if report.view.part().samples > 0 {
        parts.push(format!(
            "a share of 10% has a 95% interval of {:.0}–{:.0}%",
            quality.tenth.low, quality.tenth.high
        ));
    }
    parts.join(", ").into()
}

/// The command to type for more.
fn more(report: &Explanation<'_>, code: &HotFunctions, context: &ReportContext<'_>) -> Text {
    let mut text = Text::default().name(&context.commands.full);
    // The hottest function that has instructions: interpreted functions have none.
    if let (Some((function, _)), true) = (code.known.first(), context.commands.is_kept) {
        text = text.and(", ").name((context.commands.annotate)(&places::short_name(&function.name)));
    }
    let waits = report.pace.class() == Some(BoundBy::Waiting) && !report.has_goroutines();
    if waits && !waits::are_known(report, context) {
        text = text.and(", ").name(&context.commands.off_cpu);
    }
    text
}
