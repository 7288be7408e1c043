//! One-screen report: the waits of a target, by line of user code and call.
//!
//! Elsewhere: the section of the full report (`sections/why.rs`).

use plumb_analyze::{BoundBy, Cost, Explanation, FrameIndex, View, WaitKind, Waits};

use plumb_profile::{Event, Profile};

use super::ReportContext;
use crate::duration::time;
use crate::explain::headline::short_percent;
use crate::explain::places;
use crate::label;
use crate::sections::{Block, ReportSection};
use crate::text::Text;

/// Most waits listed.
const LISTED: usize = 3;
/// Smallest listed share of all waiting, in percent.
const LEAST: f64 = 5.0;
/// The call behind locks, conditions and joins.
const FUTEX: &str = "futex";
/// Most places named per call, and the smallest share of the call for the second and third, in percent.
const PLACES: usize = 3;
const LEAST_OF_ROW: f64 = 10.0;
/// A later start of the recording of waits is mentioned.
const LATE_NS: u64 = 100_000_000;

/// Omitted for a target that runs most of the time; threads of Go wait for goroutines, so their waits are shown only on request.
pub(super) fn say(report: &Explanation<'_>, context: &ReportContext<'_>, section: &mut ReportSection) {
    let Some(waits) = blocked(report, context) else { return };
    let mut lines = lines(waits);
    lines.extend(idle(waits));
    if !lines.is_empty() {
        let whole = time(waits.time.whole.weight as f64);
        let start_ns = |profile: &Profile| profile.meta.start_ns;
        let late = start_ns(waits.view.profile()).saturating_sub(start_ns(report.view.profile()));
        let from =
            if late >= LATE_NS { format!(", recorded from {} on", time(late as f64)) } else { String::new() };
        let title = format!("Waits, {whole} of all threads together{from}");
        section.blocks.push(Block::Heading(title.into()));
        section.blocks.push(Block::Facts(lines));
    }
}

/// Whether there are waits to list.
pub(super) fn are_known(report: &Explanation<'_>, context: &ReportContext<'_>) -> bool {
    blocked(report, context).is_some_and(|waits| !lines(waits).is_empty() || idle(waits).is_some())
}

/// The way to find out more about the waits.
pub(super) fn how_to_see(report: &Explanation<'_>, context: &ReportContext<'_>) -> Text {
    match report.has_goroutines() {
        true => Text::from(
            "see where goroutines wait by Go's own block profile (runtime.SetBlockProfileRate, go tool pprof): threads don't show it",
        ),
        false => Text::from("see its waits: ").name(&context.commands.off_cpu),
    }
}

fn blocked<'r, 'p>(report: &'r Explanation<'p>, context: &ReportContext<'_>) -> Option<&'r Waits<'p>> {
    let waits = matches!(report.pace.class(), Some(BoundBy::Waiting | BoundBy::Mixed));
    let matters = waits && (context.asks_waits || !report.has_goroutines());
    report.waits.iter().find(|waits| matters && waits.event == Event::OFF_CPU)
}

/// Threads that wait for work, which are in no share.
pub(super) fn idle(waits: &Waits<'_>) -> Option<(String, Text)> {
    let sums = waits.sums.as_ref()?;
    let cost = sums.idle.part();
    let threads = sums.idle_threads();
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    let text =
        format!("{} of {threads} that wait for work, in none of these shares", time(cost.weight as f64));
    (cost.samples > 0).then(|| ("idle".to_owned(), text.into()))
}

/// The waits by kind, largest first, as a sentence.
pub(super) fn kinds(waits: &Waits<'_>) -> Option<Text> {
    let sums = waits.sums.as_ref()?;
    let whole = sums.whole();
    let busy = sums.kinds.iter().filter(|(kind, _)| *kind != WaitKind::Idle);
    let one = |&(kind, cost): &(WaitKind, Cost)| {
        format!("{} {}", kind.title(), short_percent(cost.percent_of(whole)))
    };
    let all: Vec<String> = busy.map(one).collect();
    (!all.is_empty()).then(|| all.join(", ").into())
}

/// The calls with the longest waits, each with the line of user code that waited longest.
fn lines(waits: &Waits<'_>) -> Vec<(String, Text)> {
    let rows = waits.time.rows.iter().zip(&waits.callers);
    let large = rows.filter(|(row, _)| row.cost.percent_of(waits.time.whole) >= LEAST);
    large
        .take(LISTED)
        .map(|(row, callers)| {
            let call = label::wait(waits.event, row.cause, &row.name);
            // The longest wait may just be for the end of the others.
            let share = |cost: &Cost| cost.percent_of(row.cost);
            let known = callers.places.iter().enumerate();
            let told = known.filter(|(at, (_, cost))| *at == 0 || share(cost) >= LEAST_OF_ROW).take(PLACES);
            let text = told.fold(Text::from(call), |text, (at, (frame, cost))| {
                let part = match at {
                    0 if *cost == row.cost => String::new(),
                    0 => format!("{} of it ", short_percent(share(cost))),
                    _ => format!("{} ", short_percent(share(cost))),
                };
                let text = text.and(format!(", {part}from ")).text(places::function_in(&waits.view, *frame));
                match callers.called.get(at).copied().flatten().filter(|_| row.name == FUTEX) {
                    Some(called) => text.text(function_called(&waits.view, *frame, called)),
                    None => text,
                }
            });
            (short_percent(row.cost.percent_of(waits.time.whole)), text)
        })
        .collect()
}

/// The function that waits: for a lock, a condition, a join. A function that an interpreter calls for a script is omitted.
fn function_called(view: &View<'_>, by: FrameIndex, called: FrameIndex) -> Text {
    let is_script = |frame| view.frame(frame).frame.is_some_and(|id| view.profile().is_script(id));
    let name = places::name(view, called);
    let name = name.trim_start_matches("__GI_").trim_start_matches('_');
    match name.is_empty() || is_script(by) && !is_script(called) {
        true => Text::default(),
        false => Text::from(" in ").name(name.to_owned()),
    }
}
