//! Causes of the report: what a rule found, and what its remedy gains.

use plumb_analyze::{
    Bottleneck, CodeAdvice, Cost, Explanation, FrameIndex, Gain, LoopFinding, PredictedGain,
};

use super::headline;
use super::shares::{PlaceCostJson, ShareJson, WeightJson};
use crate::advice::RuleJson;

document! {
    /// Causes by what their rules look at.
    pub(super) struct CausesJson as "Causes" of (report: &Explanation<'_>) {
        code: Vec<CodeCauseJson> = (0..report.causes.len()).map(|index| CodeCauseJson::new(report, index)).collect(),
        /// System calls or page faults; none where they were not watched.
        calls: Vec<CallCauseJson> = (0..report.calls.len()).map(|index| CallCauseJson::new(report, index)).collect(),
        processes: Vec<ProcessCauseJson> =
            (0..report.processes.len()).map(|index| ProcessCauseJson::new(report, index)).collect(),
    }
}

document! {
    /// The texts of a bottleneck: the subject with its function and line, and the gain of its remedy; null where no remedy is known.
    #[derive(Default)]
    pub(super) struct WordsJson as "BottleneckWords" of (report: &Explanation<'_>, what: Bottleneck) {
        subject: String = headline::subject(report, what).plain(),
        gain_text: Option<String> =
            headline::remedied(report, what).map(|remedied| headline::gain(report, remedied).plain()),
    }
}

document! {
    /// A cause in user code.
    pub(super) struct CodeCauseJson as "CodeCause" of (report: &Explanation<'_>, index: usize) {
        #[serde(flatten)]
        rule: RuleJson = RuleJson::new("", report.causes[index].rule, &[]),
        share: ShareJson = ShareJson::new(report.causes[index].share),
        cost: WeightJson = WeightJson::new(report.causes[index].cost),
        functions: Vec<PlaceCostJson> = places(report, &report.causes[index].functions),
        callers: Vec<PlaceCostJson> = places(report, &report.causes[index].callers),
        #[cfg_attr(test, ts(type = "unknown[]"))]
        loops: Vec<LoopFinding> = report.causes[index].loops.clone(),
        within: Option<&'static str> = report.causes[index].within,
        activity: bool = report.causes[index].is_activity,
        gain: Option<RangeJson> = code_gain(&report.causes[index]),
        #[serde(flatten)]
        words: WordsJson = WordsJson::new(report, Bottleneck::Code(index)),
    }
}

document! {
    /// A cause in system calls or page faults.
    pub(super) struct CallCauseJson as "CallCause" of (report: &Explanation<'_>, index: usize) {
        #[serde(flatten)]
        rule: RuleJson =
            RuleJson::new(&report.calls[index].about, report.calls[index].rule, &report.calls[index].measured),
        cpu_percent: f64 = report.calls[index].cpu_percent,
        wait_percent: f64 = report.calls[index].wall_percent,
        gain: Option<GainJson> = report.gain_of(Bottleneck::Calls(index)).map(GainJson::new),
    }
}

document! {
    /// A cause in the way programs are started and end.
    pub(super) struct ProcessCauseJson as "ProcessCause" of (report: &Explanation<'_>, index: usize) {
        #[serde(flatten)]
        rule: RuleJson = RuleJson::new(
            report.procs.programs[report.processes[index].program].name(),
            report.processes[index].rule,
            &report.processes[index].measured,
        ),
        share: ShareJson = ShareJson::new(report.sampling.share(report.processes[index].bound)),
        cost: WeightJson = WeightJson::new(report.processes[index].bound),
        gain_at_most: GainBoundJson =
            GainBoundJson::new(report.pace.gain(report.sampling.share(report.processes[index].bound))),
        #[serde(flatten)]
        words: WordsJson = WordsJson::new(report, Bottleneck::Processes(index)),
    }
}

document! {
    pub(super) struct RangeJson as "GainRange" of (low: f64, high: f64) {
        low: f64 = low,
        high: f64 = high,
    }
}

document! {
    /// A predicted gain in percent; null where nothing is promised of the elapsed time.
    pub(super) struct GainJson as "GainEstimate" of (gain: PredictedGain) {
        cpu_percent: RangeJson = RangeJson::new(gain.cpu.0, gain.cpu.1),
        elapsed_percent: Option<RangeJson> = gain.elapsed.map(|(low, high)| RangeJson::new(low, high)),
    }
}

document! {
    /// An upper bound of a gain. JSON has no infinity: what is everything is null times as fast.
    struct GainBoundJson as "GainBound" of (gain: Gain) {
        cpu_percent: f64 = gain.cpu_percent,
        times: Option<f64> = Some(gain.times).filter(|times| times.is_finite()),
        elapsed_percent: Option<f64> = gain.clock_percent,
    }
}

fn places(report: &Explanation<'_>, costs: &[(FrameIndex, Cost)]) -> Vec<PlaceCostJson> {
    costs.iter().map(|part| PlaceCostJson::new(&report.view, part)).collect()
}

fn code_gain(cause: &CodeAdvice) -> Option<RangeJson> {
    cause.gain.map(|gain| RangeJson::new(gain.low, gain.high))
}
