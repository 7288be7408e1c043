//! The verdict: what is above the threshold, and whether to go on.

use std::borrow::Cow;

use plumb_analyze::{Bottleneck, Explanation, Obstacle, Share};
use serde::Deserialize;

use super::causes::{GainJson, WordsJson};
use super::headline;
use super::shares::ShareJson;

document! {
    /// The verdict.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub struct VerdictJson as "Verdict" of (report: &Explanation<'_>) {
        /// Smallest CPU share still worth optimizing.
        #[serde(skip_deserializing)]
        threshold_percent: f64 = report.outlook.threshold,
        /// Whether to go on.
        #[cfg_attr(test, ts(type = "\"go on\" | \"stop\" | \"waits\" | \"can't tell\""))]
        #[serde(skip_deserializing)]
        verdict: Cow<'static, str> = match report.outlook.above.is_empty() {
            _ if report.saved_at_most().is_some() => "waits",
            false => "go on",
            true if report.outlook.is_done() => "stop",
            true => "can't tell",
        }.into(),
        /// The answer in one sentence, as `plumb explain` prints it.
        pub headline: String = headline::headline(report).plain(),
        /// The bottleneck to begin with.
        pub cause: Option<CandidateJson> =
            waiting(report).or(report.first()).map(|(what, part)| CandidateJson::new(report, what, part)),
        #[serde(skip_deserializing)]
        above: Vec<CandidateJson> =
            report.outlook.above.iter().map(|&(what, part)| CandidateJson::new(report, what, part)).collect(),
        #[serde(skip_deserializing)]
        unsure: Vec<UnsureJson> = report.outlook.unsure.iter().map(|one| UnsureJson::new(report, one)).collect(),
        #[serde(skip_deserializing)]
        obstacle: Option<&'static str> = report.outlook.obstacle().map(|obstacle| match obstacle {
            Obstacle::Names(_) => "names",
            Obstacle::Samples => "samples",
        }),
        nameless: Option<ShareJson> = report.outlook.hidden.map(ShareJson::new),
        /// The largest of all.
        #[serde(skip_deserializing)]
        largest: Option<CandidateJson> =
            report.outlook.largest.map(|(what, part)| CandidateJson::new(report, what, part)),
    }
}

document! {
    /// A bottleneck with its share, and the gain of its remedy.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub struct CandidateJson as "Candidate" of (report: &Explanation<'_>, what: Bottleneck, part: Share) {
        #[serde(skip_deserializing)]
        kind: &'static str = kind(report, what),
        /// Name of the function, the kernel's row or the rule.
        pub name: String = name(report, what),
        /// Share of the time.
        pub share: ShareJson = ShareJson::new(part),
        #[serde(skip_deserializing)]
        gain: Option<GainJson> = report.gain_of(what).map(GainJson::new),
        #[serde(flatten, skip_deserializing)]
        words: WordsJson = WordsJson::new(report, what),
    }
}

document! {
    /// A bottleneck that may be above the threshold, with the samples needed to tell.
    struct UnsureJson as "UnsureCandidate" of (report: &Explanation<'_>, one: &(Bottleneck, Share, Option<u64>)) {
        #[serde(flatten)]
        candidate: CandidateJson = CandidateJson::new(report, one.0, one.1),
        samples_needed: Option<u64> = one.2,
    }
}

fn kind(report: &Explanation<'_>, what: Bottleneck) -> &'static str {
    match what {
        Bottleneck::Function(_) => "function",
        Bottleneck::Kernel(_) => "kernel",
        Bottleneck::Code(cause) if report.causes[cause].is_activity => "activity",
        Bottleneck::Code(_) => "code",
        Bottleneck::Line(_) => "line",
        Bottleneck::Calls(_) => "calls",
        Bottleneck::Processes(_) => "processes",
    }
}

fn name(report: &Explanation<'_>, what: Bottleneck) -> String {
    match what {
        Bottleneck::Function(frame) => report.view.frame(frame).name.to_string(),
        Bottleneck::Kernel(row) => report.time.rows[row].name.clone(),
        Bottleneck::Code(cause) => report.causes[cause].rule.name.to_owned(),
        Bottleneck::Line(line) => report.view.frame(report.outlook.lines[line].frame).name.to_string(),
        Bottleneck::Calls(index) => report.calls[index].rule.name.to_owned(),
        Bottleneck::Processes(index) => report.processes[index].rule.name.to_owned(),
    }
}

/// Returns the wait, if waiting takes most of the time.
fn waiting(report: &Explanation<'_>) -> Option<(Bottleneck, Share)> {
    let index = report.waiting_rule()?;
    let percent = report.calls[index].cpu_percent;
    Some((Bottleneck::Calls(index), Share { percent, low: percent, high: percent }))
}
