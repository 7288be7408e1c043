//! The headline: what takes the time, where, and what a remedy would gain, in one sentence. Identical on a terminal and on the page.
//!
//! Elsewhere: the sections below it (`cli`), the analysis (`analyze`).

use plumb_analyze::{Bottleneck, Explanation, Extent, FrameIndex, Obstacle, PredictedGain, Share};
use plumb_profile::DsoKind;

use super::places::{self, file_name, name};
use crate::label;
use crate::text::Text;

/// A gain that exceeds the share by more than this, in percentage points, needs an explanation.
const MUCH_MORE: f64 = 10.0;
/// A gain below this, in percentage points, counts as none.
const LITTLE: f64 = 0.5;
/// An interval wider than this, in percentage points, is given by its upper bound only.
const WIDEST: f64 = 25.0;

/// Returns the headline: the bottleneck and its cause.
pub fn headline(report: &Explanation<'_>) -> Text {
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
        let doubt = if is_activity(report, what) { "; it may be necessary work" } else { "" };
        return subject(report, what).and(format!(": {} of {}{doubt}", with_ends(share), whole(report)));
    }
    let threshold = outlook.threshold;
    if outlook.is_few {
        let samples = label::samples(report.view.part().samples);
        return format!(
            "Too few samples to tell: {samples}; record for longer, or at a higher frequency (-F)"
        )
        .into();
    }
    match (outlook.obstacle(), outlook.largest) {
        (Some(Obstacle::Names(share)), _) => {
            format!("{} of the samples are in code without names", short_percent(share.percent)).into()
        }
        (_, Some((what, share))) if share.percent >= threshold => {
            let percent = short_percent(share.percent);
            let interval = format!("{:.0}–{:.0}%", share.low, share.high);
            subject(report, what).and(format!(
                ": {percent} of {}; too few samples to say whether it is above {threshold}% (95% interval {interval})",
                whole(report)
            ))
        }
        _ => Text::from(format!("Nothing stands out: nothing named is above {threshold}%")),
    }
}

/// Returns where the time goes, as a sentence without its end.
pub fn subject(report: &Explanation<'_>, what: Bottleneck) -> Text {
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
        Bottleneck::Function(frame) if !report.view.frame(frame).named => nameless(report, frame),
        Bottleneck::Function(_) => text_of(report, what),
        Bottleneck::Line(index) => {
            let line = &report.outlook.lines[index];
            let text = places::function(report, line.frame).and(" calls ");
            match line.calls.first() {
                Some(&(frame, cost))
                    if cost.weight.saturating_mul(4) >= line.cost.weight.saturating_mul(3) =>
                {
                    text.name(name(&report.view, frame))
                }
                _ => text.and("functions of libraries"),
            }
        }
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

/// Returns where the time goes, in words.
pub fn text_of(report: &Explanation<'_>, what: Bottleneck) -> Text {
    match what {
        Bottleneck::Function(frame) => places::listed(report, frame),
        Bottleneck::Kernel(index) => {
            let row = &report.time.rows[index];
            Text::from(format!("{} (the kernel)", label::cause(row.cause, &row.name)))
        }
        Bottleneck::Code(index) => {
            let cause = &report.causes[index];
            let text = Text::from(format!("{}: ", cause.rule.name));
            let Some(&(frame, _)) = cause.functions.first() else { return text };
            match cause.extent {
                Extent::Calls => text.name(name(&report.view, frame)).and(" and what it calls"),
                Extent::Instructions => text.name(name(&report.view, frame)),
                Extent::Files => text.and("all of ").name(file_name(report.view.frame(frame).dso_path)),
            }
        }
        Bottleneck::Line(index) => {
            places::function(report, report.outlook.lines[index].frame).and(" and what it calls in libraries")
        }
        Bottleneck::Calls(index) => {
            let advice = &report.calls[index];
            let text = Text::from(format!("{}: ", advice.rule.name));
            if advice.about.is_empty() { text.and(advice.rule.claim) } else { text.name(&*advice.about) }
        }
        Bottleneck::Processes(index) => {
            let advice = &report.processes[index];
            let program = label::program(&report.procs.programs[advice.program], false);
            Text::from(format!("{}: ", advice.rule.name)).name(program)
        }
    }
}

/// Returns the process that generated the code at run time, if it is in no file.
pub fn maker(report: &Explanation<'_>, frame: FrameIndex) -> Option<u32> {
    let dso = report.view.frame(frame).dso?;
    match report.view.profile().dsos[dso].kind {
        DsoKind::Anonymous { pid } => Some(pid),
        _ => None,
    }
}

/// Describes a function without a name.
fn nameless(report: &Explanation<'_>, frame: FrameIndex) -> Text {
    match maker(report, frame) {
        Some(_) => Text::from("Code that was compiled at run time and has no names"),
        None => places::listed(report, frame),
    }
}

/// Returns the bottleneck that the remedy addresses: a cause found by a rule, or the function if its instructions or locks are the cause. `None`:
/// no remedy is known.
pub fn remedied(report: &Explanation<'_>, what: Bottleneck) -> Option<Bottleneck> {
    let contended = || report.contended().map(Bottleneck::Calls);
    match what {
        Bottleneck::Code(_) | Bottleneck::Calls(_) | Bottleneck::Processes(_) => Some(what),
        Bottleneck::Function(frame) if !report.view.frame(frame).named => None,
        Bottleneck::Function(frame) => {
            contended().or_else(|| report.instructions_of(frame).map(Bottleneck::Code))
        }
        Bottleneck::Line(_) => contended(),
        Bottleneck::Kernel(_) => None,
    }
}

/// Whether the activity is known but not its reason.
pub fn is_activity(report: &Explanation<'_>, what: Bottleneck) -> bool {
    matches!(what, Bottleneck::Code(index) if report.causes[index].is_activity)
}

/// Returns the gain of the remedy.
pub fn gain(report: &Explanation<'_>, what: Bottleneck) -> Text {
    let Some(PredictedGain { cpu: (low, high), elapsed, is_wait }) = report.gain_of(what) else {
        return "not estimated".into();
    };
    let cpu = match is_activity(report, what) {
        // The part that is not needed.
        true => {
            return format!("at most {} of {}, if none of it is needed", short_percent(high), whole(report))
                .into();
        }
        false => {
            let share =
                report.outlook.above.iter().find(|(one, _)| *one == what).map(|(_, share)| share.high);
            let is_more = share.is_some_and(|share| high > share + MUCH_MORE);
            let with = if is_more { ", including the work around it" } else { "" };
            format!("{} of {}{with}", range(low, high), whole(report))
        }
    };
    // For waits only elapsed time can be gained.
    if let Some((least, most)) = elapsed.filter(|&(_, most)| is_wait || high < LITTLE && most >= LITTLE) {
        return format!("{} of the elapsed time", range(least, most)).into();
    }
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

/// Formats a range: `about 37–52%`.
fn range(low: f64, high: f64) -> String {
    match high - low > WIDEST {
        true => format!("up to {}", short_percent(high)),
        false => format!("about {low:.0}–{high:.0}%"),
    }
}

/// Returns what shares refer to.
pub fn whole(report: &Explanation<'_>) -> &'static str {
    match report.untold {
        Some(_) => "what the file counts",
        None if report.pace.user_only => "user code's processor time",
        None => "processor time",
    }
}

/// Formats a percentage with as many digits as the samples justify.
pub fn short_percent(value: f64) -> String {
    if value < 9.95 && value > 0.0 { format!("{value:.1}%") } else { format!("{value:.0}%") }
}

/// Formats a share with its interval: `61% (58–64)`.
fn with_ends(share: Share) -> String {
    format!("{} ({:.0}–{:.0})", short_percent(share.percent), share.low, share.high)
}
