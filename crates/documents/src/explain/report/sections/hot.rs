//! Functions, lines and callers.

use plumb_analyze::{Explanation, HotCode, HotFunction, HotInstruction, SampledFunction, SampledLine};

use super::figures::{cell, interval, path, percent, percent_of, with_interval};
use crate::code::Annotated;
use crate::explain::HotFunctions;
use crate::explain::headline::whole;
use crate::explain::places::{self, file_name, name, short_name};
use crate::sections::{Block, ReportSection};
use crate::sections::{Cells, Layout};
use crate::text::Text;

/// Call paths shown of each function.
const PATHS: usize = 3;
/// Classes of instructions that are named of each function.
const CLASSES: usize = 4;

/// Section 3.
pub(super) fn functions(report: &Explanation<'_>) -> ReportSection {
    let mut section = ReportSection::new("Top functions");
    if report.functions.is_empty() {
        section.say(format!("No function has 1% of {}.", whole(report)));
        return section;
    }
    let line = |function: &HotFunction| {
        vec![
            percent(report, function.own_share.percent),
            interval(report, function.own_share),
            percent(report, function.total_share.percent),
            cell(&report.view, function.frame, function.inlined),
            places::hottest(report, function),
        ]
    };
    let lines = report.functions.iter().map(line).collect();
    let columns = [
        ("Self", Layout::Number),
        ("95% interval", Layout::Number),
        ("Total", Layout::Number),
        ("Function", Layout::Function),
        ("Hottest line", Layout::Path),
    ];
    section.table(&columns, lines);
    let together: f64 = report.functions.iter().map(|function| function.own_share.percent).sum();
    section.note(format!(
        "Self: in the function; Total: with all that it calls. Together they have {} in themselves. Intervals are Wilson's, of Self; n \
         samples count as n/1.5, as shares vary that much more between runs.",
        percent(report, together)
    ));
    section
}

/// Section 4.
pub(super) fn lines(report: &Explanation<'_>, code: &HotFunctions) -> ReportSection {
    let mut section = ReportSection::new("Hot lines and instructions");
    let lines: Vec<Cells> = report.lines.iter().map(|one| line(report, one)).collect();
    if lines.is_empty() {
        let missing = percent(report, report.quality.without_line);
        section.say(match report.quality.without_line {
            share if share > 50.0 && report.untold.is_some() => {
                format!("Of {missing} of user code the file tells no line.")
            }
            share if share > 50.0 => {
                format!("{missing} of user code has no line: build with -g, or install debug symbols.")
            }
            _ => format!("No line has half a percent of {}.", whole(report)),
        });
    }
    let columns = [
        ("Of all", Layout::Number),
        ("95% interval", Layout::Number),
        ("Of function", Layout::Number),
        ("Line", Layout::Path),
        ("Function", Layout::Function),
    ];
    section.table(&columns, lines);
    hottest(report, code, &mut section);
    for (hot, (function, annotated)) in report.code.iter().zip(&code.known) {
        instructions(report, hot, (function, annotated), &mut section);
    }
    if report.code.iter().any(|hot| !hot.instructions.is_empty()) {
        section.note("The share of a function here includes the functions that are inlined into it.");
    }
    if report.code.iter().any(|hot| hot.instructions.iter().any(|one| one.doubt.is_some())) {
        section.note(
            "A class with ? is to be read with care: the samples tell the block, the first instruction behind a jump, or what a call that \
             returned took. plumb annotate shows all of a function.",
        );
    }
    if code.known.iter().any(|(_, annotated)| annotated.annotation.is_adjusted) {
        section.note(
            "Adjusted: a timer's samples land on the instruction after the one that held up the others; they are counted where the \
             processor waited. A class says what an instruction may have waited for.",
        );
    }
    // Said once of all that have the same reason.
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (function, why) in &code.unknown {
        let share = percent(report, function.own.percent_of(report.view.whole()));
        let (name, why) = (format!("{} ({share})", short_name(&function.name)), why.to_string());
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    for (why, names) in reasons {
        let text = Text::from("The code of ").name(names.join(", "));
        section.say(text.and(format!(" can't be read: {why}.")));
    }
    section
}

fn line(report: &Explanation<'_>, line: &SampledLine) -> Cells {
    vec![
        percent(report, line.share.percent),
        interval(report, line.share),
        percent(report, line.of_function),
        format!("{}:{}", file_name(&line.file), line.line),
        line.function.clone(),
    ]
}

/// The one instruction with the most time, and what that is of everything.
fn hottest(report: &Explanation<'_>, code: &HotFunctions, section: &mut ReportSection) {
    let all = report
        .code
        .iter()
        .zip(&code.known)
        .filter_map(|(hot, known)| Some((hot.instructions.first()?, known)));
    let Some((one, (function, annotated))) =
        all.max_by(|(one, _), (other, _)| one.share.percent.total_cmp(&other.share.percent))
    else {
        return;
    };
    let text = Text::from("The hottest instruction: ").name(annotated.texts[one.index].trim());
    let text = text.and(format!(" ({}) has {} of ", class(annotated, one), percent(report, one.of_function)));
    let text = text.name(short_name(&function.name));
    section.say(text.and(format!(" and so {} of everything.", with_interval(report, one.share))));
}

fn instructions(
    report: &Explanation<'_>,
    hot: &HotCode,
    (function, annotated): (&SampledFunction, &Annotated),
    section: &mut ReportSection,
) {
    if hot.instructions.is_empty() {
        return;
    }
    let classes: Vec<String> = hot
        .classes
        .iter()
        .take(CLASSES)
        .map(|(word, share)| format!("{word} {}", percent(report, *share)))
        .collect();
    let title = Text::default().name(short_name(&function.name));
    let of_which =
        if classes.is_empty() { String::new() } else { format!(", of which {}", classes.join(", ")) };
    section
        .blocks
        .push(Block::Heading(title.and(format!(": {}{of_which}", percent(report, hot.share.percent)))));
    let line = |one: &HotInstruction| {
        let address = annotated.annotation.listing.instructions()[one.index].address.0;
        vec![
            percent(report, one.share.percent),
            interval(report, one.share),
            percent(report, one.of_function),
            format!("{address:x}: {}", annotated.texts[one.index].trim()),
            class(annotated, one),
        ]
    };
    let columns = [
        ("Of all", Layout::Number),
        ("95% interval", Layout::Number),
        ("Of function", Layout::Number),
        ("Instruction", Layout::Path),
        ("Class", Layout::Word),
    ];
    section.table(&columns, hot.instructions.iter().map(line).collect());
}

/// The words of an instruction's class, with a mark where its share is to be read with care.
fn class(annotated: &Annotated, one: &HotInstruction) -> String {
    let words = annotated.annotation.listing.instructions()[one.index].class.words();
    let words = if words.is_empty() { "computing".to_owned() } else { words.join(" ") };
    if one.doubt.is_some() { format!("{words} ?") } else { words }
}

/// Section 5.
pub(super) fn callers(report: &Explanation<'_>) -> ReportSection {
    let mut section = ReportSection::new("Callers that matter");
    for (function, paths) in report.functions.iter().zip(&report.paths) {
        let title = Text::default().name(name(&report.view, function.frame));
        section.blocks.push(Block::Heading(
            title.and(format!(": {}, of which", percent(report, function.own_share.percent))),
        ));
        let share = |value: f64| percent_of(report, function.own, value);
        let mut facts: Vec<(String, Text)> = Vec::new();
        for one in paths.iter().take(PATHS) {
            let names = one.callers.iter().map(|&frame| name(&report.view, frame)).collect();
            facts.push((share(one.cost.percent_of(function.own)), path(names, one.is_whole)));
        }
        let told: f64 = paths.iter().take(PATHS).map(|one| one.cost.percent_of(function.own)).sum();
        match (paths.is_empty(), 100.0 - told) {
            (true, _) => section.say("No caller brings 10% of it."),
            (_, left) => {
                if left >= 0.05 {
                    facts.push((share(left), "by other paths".into()));
                }
                section.blocks.push(Block::Facts(facts));
            }
        }
    }
    if report.functions.is_empty() {
        section.say(format!("No function has 1% of {}.", whole(report)));
    }
    section
}
