//! The last sections: quality of the data, verdict, and how to reproduce the report.

use plumb_analyze::{Bottleneck, BoundBy, Explanation, Obstacle, Precision, Share};

use super::figures::{gain, interval, percent, with_interval};
use super::time::tells_kernel;
use crate::duration::time;
use crate::explain::headline::{self, text_of, whole};
use crate::explain::places::file_name;
use crate::explain::report::brief;
use crate::sections::{Block, ReportSection};
use crate::text::Text;

/// Most reasons for truncated stacks, and most files without names, that are listed.
const TOLD: usize = 3;
/// Most bottlenecks listed.
const LISTED: usize = 5;

/// Section 8.
pub(super) fn quality(report: &Explanation<'_>) -> ReportSection {
    let mut section = ReportSection::new("Quality of the data");
    let (quality, profile) = (&report.quality, report.view.profile());
    let meta = &profile.meta;
    let rate = meta.frequency_hz.map_or(String::new(), |hz| format!(" at {hz} a second"));
    let coverage = quality.coverage.map_or(String::new(), |share| {
        let precision = Precision::of_samples(report.view.part().samples).min(Precision::TENTHS);
        format!(", coverage {}", precision.percent(share))
    });
    let lost = match meta.lost_samples {
        0 if report.untold.is_some() => "number of lost samples unknown".to_owned(),
        lost => format!("{lost} lost"),
    };
    let samples = format!("{}{rate}, {lost}{coverage}", report.view.part().samples);
    let mut facts: Vec<(String, Text)> = vec![("samples".into(), samples.into())];
    if let Some(name) = report.untold {
        let text = Text::from("the file calls it ").name(name);
        facts.push(("counted".into(), text.and("; unknown whether that is processor time")));
    }
    facts.push(("stacks".into(), stacks(report)));
    facts.push(("names".into(), names(report)));
    facts.push((
        "lines".into(),
        format!("missing for {} of user code", percent(report, quality.without_line)).into(),
    ));
    let tenth = quality.tenth;
    let if_samples = if report.untold.is_some() { ", if each that is counted is a sample" } else { "" };
    facts.push((
        "resolution".into(),
        format!(
            "a share of 10% has a 95% confidence interval of {} to {}{if_samples}",
            percent(report, tenth.low),
            percent(report, tenth.high)
        )
        .into(),
    ));
    if let (Some(ns), Some(cpu)) = (meta.recorder_cpu_ns, report.pace.cpu_ns) {
        let cpu = cpu.max(1) as f64;
        let text = format!(
            "plumb itself used {}, {} of the target's",
            time(ns as f64),
            Precision::TENTHS.percent(ns as f64 * 100.0 / cpu)
        );
        facts.push(("cost".into(), text.into()));
    }
    section.blocks.push(Block::Facts(facts));
    for warning in report.view.warnings() {
        section.say(format!("{warning}."));
    }
    if meta.damaged_records > 0 {
        section.say(format!("{} records were damaged and could not be read.", meta.damaged_records));
    }
    section
}

fn stacks(report: &Explanation<'_>) -> Text {
    let stacks = &report.quality.stacks;
    let profile = report.view.profile();
    let mut text = match stacks.complete_percent() {
        Some(complete) => Text::from(format!("{} complete", percent(report, complete))),
        None => Text::from("complete stacks: unknown".to_owned()),
    };
    for cause in stacks.causes.iter().take(TOLD) {
        let share = cause.cost.samples as f64 * 100.0 / stacks.samples.max(1) as f64;
        text = text.and(format!("; {} cut: {}", percent(report, share), cause.cut.text()));
        if let Some(dso) = cause.dso {
            text = text.and(" (").name(file_name(profile.strings.get(profile.dsos[dso].path))).and(")");
        }
    }
    text
}

fn names(report: &Explanation<'_>) -> Text {
    let quality = &report.quality;
    let mut text = Text::from(format!("missing for {}", percent(report, quality.nameless_share.percent)));
    for (index, &(path, cost)) in quality.nameless.iter().take(TOLD).enumerate() {
        let share = percent(report, cost.percent_of(report.sampling.whole()));
        let file = if path.is_empty() { "[not mapped]" } else { file_name(path) };
        text = text.and(if index == 0 { ": " } else { ", " }).name(file).and(format!(" {share}"));
    }
    text
}

/// The summary above all sections.
pub(super) fn summary(report: &Explanation<'_>) -> Text {
    let failure = brief::failure(report).map_or_else(Text::default, |failure| failure.and(". "));
    let pace = &report.pace;
    let class = pace.class().map_or("bottleneck class: unknown", BoundBy::name);
    let cores = pace.cores().map_or(String::new(), |cores| format!(", {cores:.2} processors used"));
    let kernel = match tells_kernel(report) {
        true => format!(", {} in the kernel", percent(report, pace.kernel_percent)),
        false => String::new(),
    };
    let gap = report.view.profile().meta.coverage_gap().map_or(String::new(), |gap| format!("{gap}. "));
    failure.and(format!("{class}{cores}{kernel}. {gap}Verdict: ")).text(verdict_text(report))
}

/// Section 9.
pub(super) fn verdict(report: &Explanation<'_>) -> ReportSection {
    let mut section = ReportSection::new("Verdict");
    section.blocks.push(Block::Strong(verdict_text(report)));
    let outlook = &report.outlook;
    let waits = report.pace.class() == Some(BoundBy::Waiting);
    if let (true, Some((_, most))) = (waits, report.pace.wanted()) {
        section.say(format!(
            "First of all, for {:.1}% of the elapsed time or more it neither runs nor waits for a processor. See section 6.",
            100.0 - (most * 100.0).min(100.0)
        ));
    }
    let line = |(what, share): (Bottleneck, Share)| {
        (
            percent(report, share.percent),
            text_of(report, what).and(format!(" ({})", interval(report, share).replace("..", "to"))),
        )
    };
    if outlook.above.len() > 1 {
        section.say(format!("Above {}%, all that there is:", outlook.threshold));
        section.blocks.push(Block::Facts(outlook.above.iter().copied().take(LISTED).map(line).collect()));
    }
    if let Some((what, share)) = outlook.above.first().copied() {
        let gains = match what {
            Bottleneck::Code(_) => Text::from(", without it: ").text(headline::gain(report, what)),
            _ => format!(", if it went away, would gain {}", gain(report, report.pace.gain(share))).into(),
        };
        section.say(text_of(report, what).text(gains).and("."));
    }
    if let Some(share) = outlook.hidden {
        section.say(format!(
            "{} is in code without names (section 8): what in it may be above {}% can't be told. Debug symbols would tell.",
            with_interval(report, share),
            outlook.threshold
        ));
    }
    for &(what, share, needed) in outlook.unsure.iter().take(LISTED) {
        let samples = needed
            .map_or(String::new(), |needed| format!(": about {} samples in all would tell", rounded(needed)));
        let text = Text::from("Can't tell: ").text(text_of(report, what));
        section.say(text.and(format!(
            " has {}, which may be above {}% or below{samples}.",
            with_interval(report, share),
            outlook.threshold
        )));
    }
    section
}

/// Rounds up to two significant digits: no more are known.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(unit) * unit
}

/// The verdict in a sentence or two.
fn verdict_text(report: &Explanation<'_>) -> Text {
    let outlook = &report.outlook;
    if let Some(most) = report.saved_at_most() {
        let text = Text::from(format!(
            "it waits: less processor time can save {} of the elapsed time at most.",
            percent(report, most)
        ));
        let Some((what, share)) = outlook.largest else { return text };
        let largest = text.and(" The largest part of that is ").text(text_of(report, what));
        return largest.and(format!(", {} of {}.", with_interval(report, share), whole(report)));
    }
    let threshold = outlook.threshold;
    if let Some((what, share)) = outlook.above.first().copied() {
        let text = Text::from("worth going on. Next: ").text(text_of(report, what));
        return text.and(format!(
            ", {} of {}, above the threshold of {threshold}%.",
            with_interval(report, share),
            whole(report)
        ));
    }
    let Some((what, share)) = outlook.largest else {
        return Text::from(format!("stop: nothing above {threshold}%."));
    };
    if outlook.is_done() {
        let text = Text::from(format!("stop: nothing above {threshold}%. The largest is "));
        return text.text(text_of(report, what)).and(format!(", {}.", with_interval(report, share)));
    }
    let text = Text::from(format!("can't tell whether anything is above {threshold}%: "));
    if let Some(Obstacle::Names(share)) = outlook.obstacle() {
        return text.and(format!("{} is in code without names.", with_interval(report, share)));
    }
    text.text(text_of(report, what)).and(format!(" has {}.", with_interval(report, share)))
}

/// Section 10.
pub(super) fn again(commands: &[String]) -> ReportSection {
    let mut section = ReportSection::new("Reproduce");
    section.blocks.push(Block::Commands(commands.to_vec()));
    section
}
