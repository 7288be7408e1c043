//! On the one screen, what a target waits for: which of the user's lines, in which call.
//!
//! Not here: the section of the whole report (`sections/why.rs`).

use plumb_analyze::{BoundBy, Cost, Explanation, Waits};

use plumb_profile::Profile;

use super::places;
use super::sections::short_percent;
use crate::render::document::{Block, Section, Text};
use crate::render::duration::time;
use crate::render::label;

/// Waits that are listed.
const LISTED: usize = 3;
/// Those below this share of all waiting are not, in percent.
const LEAST: f64 = 5.0;
/// Places of a call that are named, and from which share of it on the second and third are, in percent.
const PLACES: usize = 3;
const LEAST_OF_ROW: f64 = 10.0;
/// From here on it is said that they were not recorded from the beginning on.
const LATE_NS: u64 = 100_000_000;

/// A target that runs for most of the time waits for nothing that matters; threads of Go wait for goroutines.
pub(super) fn say(report: &Explanation<'_>, section: &mut Section) {
    let Some(waits) = blocked(report) else { return };
    let lines = lines(waits);
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

/// Whether there is something to list.
pub(super) fn are_known(report: &Explanation<'_>) -> bool {
    blocked(report).is_some_and(|waits| !lines(waits).is_empty())
}

fn blocked<'r, 'p>(report: &'r Explanation<'p>) -> Option<&'r Waits<'p>> {
    let waits = matches!(report.pace.class(), Some(BoundBy::Waiting | BoundBy::Mixed));
    let matters = waits && !report.has_goroutines();
    report.waits.iter().find(|waits| matters && waits.event == "off-cpu")
}

/// The calls that were waited in longest, each with the line of the user's that waited longest.
fn lines(waits: &Waits<'_>) -> Vec<(String, Text)> {
    let rows = waits.time.rows.iter().zip(&waits.callers);
    let large = rows.filter(|(row, _)| row.cost.percent_of(waits.time.whole) >= LEAST);
    large
        .take(LISTED)
        .map(|(row, callers)| {
            let call = label::wait(waits.event, row.cause, &row.name);
            // Who waits longest may just wait for the others' end.
            let share = |cost: &Cost| cost.percent_of(row.cost);
            let known = callers.places.iter().enumerate();
            let told = known.filter(|(at, (_, cost))| *at == 0 || share(cost) >= LEAST_OF_ROW).take(PLACES);
            let text = told.fold(Text::from(call), |text, (at, (frame, cost))| {
                let part = match at {
                    0 if *cost == row.cost => String::new(),
                    0 => format!("{} of it ", short_percent(share(cost))),
                    _ => format!("{} ", short_percent(share(cost))),
                };
                text.and(format!(", {part}from ")).text(places::function_in(&waits.view, *frame))
            });
            (short_percent(row.cost.percent_of(waits.time.whole)), text)
        })
        .collect()
}
