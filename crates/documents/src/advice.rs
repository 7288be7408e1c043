//! Advice on system calls and on processes: the rule, what was measured, what to do.
//!
//! Elsewhere: causes of the report of hotspots, which have their gains (`explain`).

use std::borrow::Cow;

use plumb_analyze::{Advice, CallAdvice, Measure, Procs, Rule};
use serde::Deserialize;

use crate::duration::time;

document! {
    /// Advice from calls that were traced. `processes`: of the same recording.
    pub struct AdviceDocument as "AdviceAnswer" of (
        calls: &[CallAdvice],
        processes: Vec<ProcessAdviceJson>,
        seen: u64,
        dropped: u64,
        cost_percent: f64,
    ) {
        advice: Vec<CallAdviceJson> = calls.iter().map(CallAdviceJson::new).collect(),
        processes: Vec<ProcessAdviceJson> = processes,
        watched: u64 = seen,
        dropped: u64 = dropped,
        watching_cpu_percent: f64 = cost_percent,
    }
}

document! {
    struct CallAdviceJson as "CallAdvice" of (advice: &CallAdvice) {
        #[serde(flatten)]
        rule: RuleJson = RuleJson::new(&advice.about, advice.rule, &advice.measured),
        cpu_ns: f64 = advice.cpu_ns,
        cpu_percent: f64 = advice.cpu_percent,
        wall_ns: f64 = advice.wall_ns,
        wall_percent: f64 = advice.wall_percent,
    }
}

document! {
    /// Advice on a program's processes. `place`: index of the program among those that are listed.
    pub struct ProcessAdviceJson as "ProcessAdvice" of (procs: &Procs<'_>, advice: &Advice, place: Option<usize>) {
        #[serde(flatten)]
        rule: RuleJson = RuleJson::new(procs.programs[advice.program].name(), advice.rule, &advice.measured),
        program: Option<usize> = place,
        bound_weight: u64 = advice.bound.weight,
        bound_percent: f64 = advice.bound_percent,
    }
}

document! {
    /// A rule that holds.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub struct RuleJson as "Advice" of (about: &str, rule: &Rule, measured: &[Measure]) {
        /// The rule's name.
        pub rule: Cow<'static, str> = rule.name.into(),
        /// The file, call or program.
        pub about: String = about.to_owned(),
        /// The habit that is seen.
        pub pattern: Cow<'static, str> = rule.pattern.into(),
        threshold: Cow<'static, str> = rule.threshold.into(),
        /// The advice.
        pub remedy: Cow<'static, str> = rule.remedy.into(),
        bound: Cow<'static, str> = rule.bound.into(),
        source: Cow<'static, str> = rule.source.into(),
        #[serde(skip_deserializing)]
        measured: Vec<MeasureJson> = measured.iter().map(MeasureJson::new).collect(),
    }
}

document! {
    struct MeasureJson as "Measure" of (measure: &Measure) {
        what: &'static str = measure.what,
        value: f64 = measure.value,
        unit: &'static str = measure.unit,
    }
}

/// Returns a measurement as text: `forks: 12/s`.
pub fn number(measure: &Measure) -> String {
    let Measure { what, value, unit } = measure;
    match *unit {
        "" => format!("{what}: {value:.0}"),
        "ms" => format!("{what}: {}", time(value * 1e6)),
        "%" => format!("{what}: {value:.1}%"),
        unit if unit.starts_with('/') => format!("{what}: {value:.0}{unit}"),
        unit => format!("{what}: {value:.1} {unit}"),
    }
}
