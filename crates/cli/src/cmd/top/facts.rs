//! Facts on a window of `plumb top`: samples, losses, coverage, and plumb's own cost.

use std::time::Duration;

use plumb_analyze::Precision;
use plumb_record::WindowSum;

use crate::render::label;

/// Facts on the window, most important first.
pub(super) fn facts(window: &WindowSum, interval: Duration) -> Vec<String> {
    let WindowSum { rates, clock_hz, .. } = window;
    let mut facts = vec![label::samples(rates.samples), format!("{} lost", rates.lost)];
    if let Some(coverage) = clock_hz.and_then(|hz| rates.coverage(hz)) {
        let precision = Precision::of_samples(rates.samples).min(Precision::TENTHS);
        facts.push(format!("coverage {}", precision.percent(coverage)));
    }
    facts.push(format!("plumb {:.1}% of a CPU", rates.own_percent()));
    facts.push(format!("window {:.1} s", rates.length_ns() as f64 / 1e9));
    facts.push(format!("every {} s", interval.as_secs_f64()));
    facts
}
