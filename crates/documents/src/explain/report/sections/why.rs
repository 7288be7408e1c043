//! The sections on waits, and on causes with advice.

use plumb_analyze::{
    Advice, Bottleneck, BoundBy, CodeAdvice, Cost, Explanation, FrameIndex, Precision, Rule, Waits,
};
use plumb_profile::Event;

use super::figures::{gain, path, percent, with_interval};
use crate::duration::time;
use crate::explain::headline::{self, whole};
use crate::explain::places::{name, short};
use crate::explain::report::{ReportContext, waits as brief_waits};
use crate::label;
use crate::sections::{Block, ReportSection};
use crate::text::Text;

/// Most reasons to wait that are shown, and most stacks of each.
const REASONS: usize = 5;
const STACKS: usize = 2;

/// Section 6.
pub(super) fn waits(report: &Explanation<'_>) -> ReportSection {
    let mut section = ReportSection::new("Waits");
    if report.waits.is_empty() {
        let waits = report.pace.class() == Some(BoundBy::Waiting);
        let hint =
            if waits { "That is where the time goes here" } else { "They matter where processors idle" };
        let command = Text::default().and("Not recorded: ").name("plumb record --off-cpu -o off.plumb");
        let command = command.and(" (root) samples what threads wait for, and ").name("--waits off.plumb");
        section.say(command.and(format!(" adds them to this report. {hint}.")));
    }
    report.waits.iter().for_each(|waits| event(waits, &mut section));
    section
}

fn event(waits: &Waits<'_>, section: &mut ReportSection) {
    let whole = waits.time.whole;
    let precision = Precision::of(&waits.view);
    let percent = |cost: Cost| precision.percent(cost.percent_of(whole));
    let what =
        if waits.event == Event::OFF_CPU { "Waiting for something" } else { "Waiting for a processor" };
    let threads = {
        let mut threads: Vec<_> = waits.view.samples().map(|kept| kept.sample.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.len()
    };
    section.blocks.push(Block::Heading(
        format!("{what}: {}, all of {threads} threads together", time(whole.weight as f64)).into(),
    ));
    let mut facts: Vec<(String, Text)> = Vec::new();
    facts.extend(brief_waits::kinds(waits).map(|text| ("for".to_owned(), text)));
    for row in waits.time.rows.iter().take(REASONS) {
        let reason =
            format!("{}, {}", label::wait(waits.event, row.cause, &row.name), time(row.cost.weight as f64));
        facts.push((percent(row.cost), reason.into()));
        for &(node, cost) in row.stacks.iter().take(STACKS) {
            let names = waits.view.stack(node).map(short).collect();
            facts.push((format!("  {}", percent(cost)), path(names, true)));
        }
    }
    facts.extend(brief_waits::idle(waits));
    section.blocks.push(Block::Facts(facts));
}

/// Section 7.
pub(super) fn causes(report: &Explanation<'_>, context: &ReportContext<'_>) -> ReportSection {
    let mut section = ReportSection::new("Causes, and what to do");
    report.processes.iter().for_each(|advice| processes(report, advice, &mut section));
    let causes = report.causes.iter().enumerate();
    causes.for_each(|(index, advice)| code(report, (index, advice), &mut section));
    if report.processes.is_empty() && report.causes.is_empty() {
        section
            .say("No rule holds: no known pattern takes so much that the samples can tell it from chance.");
    } else if report.processes.len() + report.causes.len() > 1 {
        section.note("A share that several findings have is in the gain of the first of them only.");
    }
    let kernel = report.sampling.share(report.time.kernel);
    if kernel.low >= report.outlook.threshold {
        let text = Text::default().and(format!("The kernel takes {}: ", percent(report, kernel.percent)));
        let text = text.name(&context.commands.kernel);
        section.say(
            text.and(" watches system calls and page faults one by one, and says what to do about them."),
        );
    }
    section
}

fn code(report: &Explanation<'_>, (index, advice): (usize, &CodeAdvice), section: &mut ReportSection) {
    let list = |costs: &[(FrameIndex, Cost)]| {
        let mut text = Text::default();
        for (index, &(frame, cost)) in costs.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let share = percent(report, cost.percent_of(report.sampling.whole()));
            text = text.and(comma).name(name(&report.view, frame)).and(format!(" {share}"));
        }
        text
    };
    let measured = vec![
        ("measured", Text::from(format!("{} of {}", with_interval(report, advice.share), whole(report)))),
        ("evidence", evidence(advice)),
        ("in", list(&advice.functions)),
        ("called by", list(&advice.callers)),
        (
            "within",
            advice
                .within
                .map_or(Text::default(), |outer| format!("{outer}: most of it is a part of that").into()),
        ),
    ];
    let most = match advice.within {
        Some(outer) => format!("a part of that of {outer}").into(),
        None => headline::gain(report, Bottleneck::Code(index)),
    };
    rule_block(advice.rule, Text::from(advice.rule.name), measured, most, section);
}

/// The evidence from the hottest loop.
fn evidence(advice: &CodeAdvice) -> Text {
    advice.loops.first().map_or(Text::default(), |finding| crate::explain::loops::sentence(finding).into())
}

fn processes(report: &Explanation<'_>, advice: &Advice, section: &mut ReportSection) {
    let program = &report.procs.programs[advice.program];
    let title = Text::from(format!("{}: ", advice.rule.name)).name(label::program(program, false));
    let numbers: Vec<String> = advice.measured.iter().map(crate::advice::number).collect();
    let most = gain(report, report.pace.gain(report.sampling.share(advice.bound))).into();
    rule_block(advice.rule, title, vec![("measured", numbers.join(", ").into())], most, section);
}

fn rule_block(
    rule: &Rule,
    title: Text,
    measured: Vec<(&str, Text)>,
    most: Text,
    section: &mut ReportSection,
) {
    section.blocks.push(Block::Heading(title));
    let mut facts: Vec<(String, Text)> = vec![("seen".into(), rule.pattern.into())];
    facts.extend(
        measured
            .into_iter()
            .filter(|(_, text)| !text.0.is_empty())
            .map(|(name, text)| (name.to_owned(), text)),
    );
    facts.push(("threshold".into(), rule.threshold.into()));
    facts.push(("do".into(), rule.remedy.into()));
    facts.push(("gain".into(), most.and(format!(": {}", rule.bound))));
    facts.push(("source".into(), rule.source.into()));
    section.blocks.push(Block::Facts(facts));
}
