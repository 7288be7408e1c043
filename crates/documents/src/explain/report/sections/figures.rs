//! Shares, amounts and names, formatted for sections.

use plumb_analyze::{Cost, Explanation, FrameIndex, Gain, Kind, Precision, Share, View};

use crate::duration::time;
use crate::explain::headline::whole;
use crate::text::Text;

/// A function's name in a table: unshortened, and marked as in other reports.
pub(in crate::explain::report) fn cell(view: &View<'_>, frame: FrameIndex, inlined: bool) -> String {
    let shown = view.frame(frame);
    let kernel = if shown.kind == Kind::Kernel { "[k] " } else { "" };
    let inlined = if inlined { crate::sections::INLINED } else { "" };
    format!("{kernel}{}{inlined}", shown.name)
}

/// The quantity that samples represent: time, or the number of events.
pub(super) fn amount(report: &Explanation<'_>, cost: Cost) -> String {
    if report.time.is_time { time(cost.weight as f64) } else { cost.weight.to_string() }
}

/// A share of the samples, with as many digits as they justify.
pub(super) fn percent(report: &Explanation<'_>, value: f64) -> String {
    percent_of(report, report.sampling.whole(), value)
}

/// A share of a subset of the samples.
pub(super) fn percent_of(report: &Explanation<'_>, part: Cost, value: f64) -> String {
    Precision::of_sampling(&report.sampling, part).percent(value)
}

/// The bounds of a share's confidence interval.
pub(super) fn interval(report: &Explanation<'_>, share: Share) -> String {
    let precision = Precision::of_sampling(&report.sampling, report.sampling.whole()).min(Precision::TENTHS);
    format!("{} .. {}", precision.digits(share.low), precision.digits(share.high))
}

/// A share with its confidence interval, for running text.
pub(super) fn with_interval(report: &Explanation<'_>, share: Share) -> String {
    let [middle, low, high] = [share.percent, share.low, share.high].map(|end| percent(report, end));
    format!("{middle} ({low} to {high})")
}

/// The largest possible gain.
pub(super) fn gain(report: &Explanation<'_>, gain: Gain) -> String {
    let times = match gain.times {
        times if times < 100.0 => format!("{times:.2} times as fast there"),
        _ => "all of it".to_owned(),
    };
    let mut text = format!("at most {} of {} ({times})", percent(report, gain.cpu_percent), whole(report));
    let cores = report.pace.cores().unwrap_or(0.0);
    match gain.clock_percent {
        None => text.push_str("; the effect on the elapsed time is unknown"),
        // Several CPUs ran at a time: how much of the gain overlapped with other work is not known.
        Some(clock) if cores > 1.05 => {
            text.push_str(&format!(
                ", and of the elapsed time at most {}: less, as far as others ran meanwhile",
                percent(report, clock)
            ));
        }
        Some(clock) => {
            text.push_str(&format!(", and at most {} of the elapsed time", percent(report, clock)));
        }
    }
    text
}

/// Functions from the innermost outwards, on one line. `is_whole`: the last is the root of the stack.
pub(super) fn path(names: Vec<String>, is_whole: bool) -> Text {
    const FIRST: usize = 7;
    let cut = names.len() > FIRST + 2;
    let mut text = Text::default();
    for (index, name) in names.iter().enumerate().filter(|&(index, _)| !cut || index < FIRST) {
        text = text.and(if index > 0 { " < " } else { "" }).name(name);
    }
    match names.last() {
        Some(last) if cut => text = text.and(" < … < ").name(last),
        _ => {}
    }
    if is_whole { text } else { text.and(" < many") }
}
