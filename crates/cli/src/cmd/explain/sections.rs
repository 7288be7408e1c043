//! What the report says, section by section.

mod end;
mod hot;
mod time;
mod why;

pub(super) use end::text_of;
pub(super) use time::tells_kernel;

use plumb_analyze::{Cost, Explanation, FrameIndex, Gain, Kind, Share, View};

pub(super) use super::places::{file_name, name};
use super::places::{short, short_name};
use super::{Args, again};
use crate::render::document::{Document, Text};
use crate::render::duration::time as text_of_time;
use plumb_report::explain::HotFunctions;

/// The report.
pub(super) fn document(report: &Explanation<'_>, code: &HotFunctions, args: &Args) -> Document {
    let profile = report.view.profile();
    let command = profile.meta.command.join(" ");
    let title = if command.is_empty() { args.file.display().to_string() } else { command };
    let again = again::commands(profile, args.records());
    Document {
        title,
        summary: end::summary(report),
        sections: vec![
            time::pace(report),
            time::split(report, args),
            hot::functions(report),
            hot::lines(report, code),
            hot::callers(report),
            why::waits(report),
            why::causes(report),
            end::quality(report),
            end::verdict(report),
            end::again(again),
        ],
    }
}

/// A function's name in a table: whole, and marked as others do.
pub(super) fn cell(view: &View<'_>, frame: FrameIndex, inlined: bool) -> String {
    let shown = view.frame(frame);
    let kernel = if shown.kind == Kind::Kernel { "[k] " } else { "" };
    let inlined = if inlined { crate::render::table::INLINED } else { "" };
    format!("{kernel}{}{inlined}", shown.name)
}

/// What shares are of.
pub(super) fn whole(report: &Explanation<'_>) -> &'static str {
    match report.untold {
        Some(_) => "what the file counts",
        None if report.pace.user_only => "user code's processor time",
        None => "processor time",
    }
}

/// What samples stand for: time, or what else their event counts.
pub(super) fn amount(report: &Explanation<'_>, cost: Cost) -> String {
    if report.time.is_time { text_of_time(cost.weight as f64) } else { cost.weight.to_string() }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

/// A share with as many digits as samples carry.
pub(super) fn short_percent(value: f64) -> String {
    if value < 9.95 && value > 0.0 { format!("{value:.1}%") } else { format!("{value:.0}%") }
}

/// The ends of a share's interval.
fn interval(share: Share) -> String {
    format!("{:.1} .. {:.1}", share.low, share.high)
}

/// A share with its interval, in running text.
fn with_interval(share: Share) -> String {
    format!("{} ({} to {})", percent(share.percent), percent(share.low), percent(share.high))
}

/// What could be gained at most.
fn gain(report: &Explanation<'_>, gain: Gain) -> String {
    let times = match gain.times {
        times if times < 100.0 => format!("{times:.2} times as fast there"),
        _ => "all of it".to_owned(),
    };
    let mut text = format!("at most {} of {} ({times})", percent(gain.cpu_percent), whole(report));
    let cores = report.pace.cores().unwrap_or(0.0);
    match gain.clock_percent {
        None => text.push_str("; what that is on the clock isn't known"),
        // Several ran at a time: how much of it at the same time as others isn't known.
        Some(percent) if cores > 1.05 => {
            text.push_str(&format!(
                ", and of the elapsed time at most {percent:.2}%: less, as far as others ran meanwhile"
            ));
        }
        Some(percent) => text.push_str(&format!(", and at most {percent:.2}% of the elapsed time")),
    }
    text
}

/// Functions from the innermost outwards, in one line. `is_whole`: the last is the root of the stack.
fn path(names: Vec<String>, is_whole: bool) -> Text {
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
