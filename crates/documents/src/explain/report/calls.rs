//! One-screen report: measurements of the system calls and page faults that a rule is about.
//!
//! Elsewhere: the list of calls.

use plumb_analyze::{Bottleneck, Explanation, Measure};

use crate::explain::headline::{gain, short_percent};
use crate::text::Text;

/// Measures left out below the headline, which already states the share of the whole run.
const TOLD_BY_HEADLINE: [&str; 2] = ["these calls", "open and close of them"];

/// Adds the fact that threads wait for a lock while one of them computes. System calls don't show which lock, or who holds it.
pub(super) fn contention(report: &Explanation<'_>, index: usize, facts: &mut Vec<(String, Text)>) {
    let share = short_percent(report.calls[index].wall_percent);
    let text = format!("other threads wait for a lock meanwhile: {share} of the elapsed time");
    facts.push(("cause".into(), text.into()));
    self::facts(report, index, facts);
}

/// Adds the measurements of system calls and page faults.
pub(super) fn facts(report: &Explanation<'_>, index: usize, facts: &mut Vec<(String, Text)>) {
    let advice = &report.calls[index];
    let is_told = |measure: &&Measure| TOLD_BY_HEADLINE.contains(&measure.what);
    let numbers: Vec<String> =
        advice.measured.iter().filter(|measure| !is_told(measure)).map(crate::advice::number).collect();
    let about = if advice.about.is_empty() {
        Text::default()
    } else {
        Text::default().name(&*advice.about).and(": ")
    };
    facts.push(("evidence".into(), about.and(numbers.join(", "))));
    facts.push(("do".into(), advice.rule.remedy.into()));
    facts.push(("gain".into(), gain(report, Bottleneck::Calls(index))));
}
