//! The answer on one screen: what is slow, why, where, what to do, what that gains, and how far to trust it.
//!
//! It says the same as the sections of the whole report, from the same analysis; `--full` shows those.

use std::path::Path;

use plumb_analyze::{
    Bottleneck, BoundBy, CodeAdvice, Explanation, Extent, FrameIndex, HotFunction, PredictedGain, Share,
};

use super::sections::{cell, name, short_percent, tells_kernel, text_of, whole};
use super::{loops, places};
use crate::render::document::{Block, Document, Section, Text};
use crate::render::duration::time;
use crate::render::table::Layout;
use crate::render::{label, rule};
use plumb_report::explain::HotFunctions;

/// Functions and further causes that are listed.
const FUNCTIONS: usize = 5;
const FURTHER: usize = 3;
/// Functions of a cause, and places, that are named.
const NAMED: usize = 3;
/// Waiting for a processor is said from this part of the elapsed time on.
const MUCH_WAITED: f64 = 0.1;
/// An interval that is wider than this, in points of percent, is given by its upper end.
const WIDEST: f64 = 25.0;

/// The document of the screen. `file`: the recording that it is of, unless that was made for it.
pub(super) fn document(
    report: &Explanation<'_>,
    code: &HotFunctions,
    file: Option<&Path>,
    ignored: &[String],
) -> Document {
    let command = report.view.profile().meta.command.join(" ");
    let name = || file.map_or(String::new(), |file| file.display().to_string());
    let title = if command.is_empty() { name() } else { command };
    let mut section = Section::new("");
    section.blocks.push(Block::Strong(headline(report)));
    let facts = facts(report);
    if !facts.is_empty() {
        section.blocks.push(Block::Facts(facts));
    }
    further(report, &mut section);
    functions(report, &mut section);
    let mut last = Vec::new();
    last.extend(left_out(report, ignored).map(|text| ("left out".into(), text)));
    last.extend([("data".into(), data(report)), ("more".into(), more(report, code, file))]);
    section.blocks.push(Block::Facts(last));
    Document { title, summary: pace(report), sections: vec![section] }
}

/// Time on the clock and on processors.
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

/// How long threads waited for a processor, where that is a good part of the elapsed time, and whether other programs had it.
fn run_queue_wait(report: &Explanation<'_>) -> Option<String> {
    let pace = &report.pace;
    let ((waited, _), elapsed) = (pace.waited_ns()?, pace.elapsed_ns?);
    let is_much = waited as f64 >= MUCH_WAITED * elapsed as f64;
    let whose = if pace.is_held_up_by_others() { " (other programs had the processors)" } else { "" };
    is_much.then(|| format!("{} run-queue wait{whose}", time(waited as f64)))
}

/// What is slow, and why.
fn headline(report: &Explanation<'_>) -> Text {
    let outlook = &report.outlook;
    if let Some(index) = report.waiting_rule() {
        let advice = &report.calls[index];
        let whose = places::of_calls(report, advice).unwrap_or_else(|| "The program".into());
        let share = short_percent(advice.wall_percent);
        return whose.and(format!(" {}: {share} of the elapsed time", advice.rule.claim));
    }
    if let Some(most) = report.saved_at_most() {
        return Text::from(format!(
            "It waits: less processor time saves {} of the elapsed time at most",
            short_percent(most)
        ));
    }
    if let Some((what, share)) = report.first() {
        return subject(report, what)
            .and(format!(": {}", with_ends(share)))
            .and(format!(" of {}", whole(report)));
    }
    let threshold = outlook.threshold;
    let nameless = report.quality.nameless_share.percent;
    let hidden = match outlook.hidden {
        Some(_) => format!("; {} has no names", short_percent(nameless)),
        None => String::new(),
    };
    match outlook.largest {
        Some((what, share)) if share.percent >= threshold => {
            let percent = short_percent(share.percent);
            let interval = format!("{:.0}–{:.0}%", share.low, share.high);
            subject(report, what).and(format!(
                ": {percent} of {}; too few samples to say whether it is above {threshold}% (95% interval {interval})",
                whole(report)
            ))
        }
        _ => Text::from(format!("Nothing stands out: nothing named is above {threshold}%{hidden}")),
    }
}

/// What time goes into, as a sentence without its end.
fn subject(report: &Explanation<'_>, what: Bottleneck) -> Text {
    match what {
        Bottleneck::Code(index) => {
            let cause = &report.causes[index];
            match cause.extent {
                Extent::Files => places::file_of(report, cause)
                    .map_or_else(|| text_of(report, what), |file| Text::from("All of ").text(file))
                    .and(" ")
                    .and(cause.rule.claim),
                _ => places::of_cause(report, cause)
                    .map_or_else(|| text_of(report, what), |text| text.and(" ").and(cause.rule.claim)),
            }
        }
        Bottleneck::Function(_) => text_of(report, what),
        Bottleneck::Kernel(index) => {
            let row = &report.time.rows[index];
            let what = label::cause(row.cause, &row.name);
            match report.kernel_callers[index].places.first() {
                Some(&(frame, _)) => {
                    places::function(report, frame).and(" keeps the kernel busy: ").and(what)
                }
                None => Text::from("The kernel: ").and(what),
            }
        }
        Bottleneck::Calls(index) => {
            let advice = &report.calls[index];
            let whose = places::of_calls(report, advice).unwrap_or_else(|| "The program".into());
            whose.and(" ").and(advice.rule.claim)
        }
        Bottleneck::Processes(index) => {
            let advice = &report.processes[index];
            let program = label::program(&report.procs.programs[advice.program], false);
            Text::default().name(program).and(" ").and(advice.rule.claim)
        }
    }
}

/// What stands behind the headline.
fn facts(report: &Explanation<'_>) -> Vec<(String, Text)> {
    let mut facts: Vec<(String, Text)> = Vec::new();
    if let Some(index) = report.waiting_rule() {
        call_facts(report, index, &mut facts);
        return facts;
    }
    if report.saved_at_most().is_some() {
        facts.push(("do".into(), Text::from("see what it waits for: ").name("plumb record --off-cpu")));
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
            facts.push(("do".into(), cause.rule.remedy.into()));
            facts.push(("gain".into(), gain(report, what)));
        }
        Bottleneck::Calls(index) => call_facts(report, index, &mut facts),
        Bottleneck::Processes(index) => {
            let advice = &report.processes[index];
            facts.push(("evidence".into(), advice.rule.pattern.into()));
            facts.push(("do".into(), advice.rule.remedy.into()));
            facts.push(("gain".into(), gain(report, what)));
        }
        Bottleneck::Function(frame) => {
            facts.push(("cause".into(), "not known: no rule holds for its code".into()));
            facts.push(("do".into(), Text::from("see its instructions: ").name(annotate(report, frame))));
        }
        Bottleneck::Kernel(_) => {
            facts.push(("do".into(), Text::from("see its calls: ").name("plumb kernel --advice -- COMMAND")));
        }
    }
    facts
}

/// What is known of system calls and page faults.
fn call_facts(report: &Explanation<'_>, index: usize, facts: &mut Vec<(String, Text)>) {
    let advice = &report.calls[index];
    let numbers: Vec<String> = advice.measured.iter().map(rule::number).collect();
    let about = if advice.about.is_empty() {
        Text::default()
    } else {
        Text::default().name(&*advice.about).and(": ")
    };
    facts.push(("evidence".into(), about.and(numbers.join(", "))));
    facts.push(("do".into(), advice.rule.remedy.into()));
    facts.push(("gain".into(), gain(report, Bottleneck::Calls(index))));
}

fn evidence(report: &Explanation<'_>, cause: &CodeAdvice) -> Text {
    if let Some(finding) = cause.loops.first() {
        return loops::sentence(finding).into();
    }
    let mut text = Text::default();
    for (index, &(frame, cost)) in cause.functions.iter().take(NAMED).enumerate() {
        let percent = short_percent(cost.percent_of(report.sampling.whole()));
        text = text
            .and(if index > 0 { ", " } else { "" })
            .name(name(&report.view, frame))
            .and(format!(" {percent}"));
    }
    text
}

/// The user's places, where there are several.
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

/// What a remedy gains.
fn gain(report: &Explanation<'_>, what: Bottleneck) -> Text {
    let Some(PredictedGain { cpu: (low, high), elapsed }) = report.gain_of(what) else {
        return "not estimated".into();
    };
    let cpu = format!("{} of {}", range(low, high), whole(report));
    let elapsed = match elapsed {
        None => "; of the elapsed time less, as far as other threads ran meanwhile".to_owned(),
        Some((_, 0.0)) => "; the elapsed time stays".to_owned(),
        Some((least, most)) if (least - low).abs() < 5.0 && (most - high).abs() < 5.0 => {
            " and of the elapsed time".into()
        }
        Some((least, most)) => format!("; {} of the elapsed time", range(least, most)),
    };
    format!("{cpu}{elapsed}").into()
}

/// `about 37–52%`.
fn range(low: f64, high: f64) -> String {
    match high - low > WIDEST {
        true => format!("up to {}", short_percent(high)),
        false => format!("about {low:.0}–{high:.0}%"),
    }
}

/// Other causes, in a line each.
fn further(report: &Explanation<'_>, section: &mut Section) {
    let first = match report.first() {
        Some((Bottleneck::Code(index), _)) => Some(index),
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
            (
                short_percent(cause.share.percent),
                text.and("; gain ").text(gain(report, Bottleneck::Code(index))),
            )
        })
        .collect();
    if !lines.is_empty() {
        section.blocks.push(Block::Heading("Also".into()));
        section.blocks.push(Block::Facts(lines));
    }
}

/// The functions with the most time in themselves.
fn functions(report: &Explanation<'_>, section: &mut Section) {
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

/// What filters took away, of which no share tells.
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

/// How far to trust it, in a line.
fn data(report: &Explanation<'_>) -> Text {
    let (quality, meta) = (&report.quality, &report.view.profile().meta);
    let mut parts = vec![format!("{} samples", report.view.part().samples)];
    if meta.lost_samples > 0 {
        parts.push(format!("{} lost", meta.lost_samples));
    }
    parts
        .extend(quality.stacks.complete_percent().map(|percent| format!("{percent:.0}% of stacks complete")));
    if quality.nameless_share.percent >= 1.0 {
        parts.push(format!("{} without names", short_percent(quality.nameless_share.percent)));
    }
    parts.push(format!("a share of 10% is {:.0}–{:.0}%", quality.tenth.low, quality.tenth.high));
    parts.join(", ").into()
}

/// What to type for more.
fn more(report: &Explanation<'_>, code: &HotFunctions, file: Option<&Path>) -> Text {
    let full = file.map_or("--full".to_owned(), |file| format!("plumb explain --full {}", file.display()));
    let mut text = Text::default().name(full);
    if let (Some(function), true) = (report.functions.first(), file.is_some() && !code.known.is_empty()) {
        text = text.and(", ").name(annotate(report, function.frame));
    }
    if report.pace.class() == Some(BoundBy::Waiting) {
        text = text.and(", ").name("plumb record --off-cpu");
    }
    text
}

fn annotate(report: &Explanation<'_>, frame: FrameIndex) -> String {
    let name = name(&report.view, frame);
    let quoted = shell_words::quote(&name).into_owned();
    format!("plumb annotate {quoted}")
}

/// `61% (58–64)`.
fn with_ends(share: Share) -> String {
    format!("{} ({:.0}–{:.0})", short_percent(share.percent), share.low, share.high)
}
