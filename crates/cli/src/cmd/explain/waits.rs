//! On the one screen, what a target waits for: which of the user's lines, in which call.
//!
//! Not here: the section of the whole report (`sections/why.rs`).

use plumb_analyze::{BoundBy, Explanation, Waits};

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
            let text = match callers.places.first() {
                Some(&(frame, cost)) => {
                    let share = short_percent(cost.percent_of(row.cost));
                    let part = if cost == row.cost { String::new() } else { format!("{share} of it ") };
                    let place = places::function_in(&waits.view, frame);
                    Text::from(format!("{call}, {part}from ")).text(place)
                }
                None => call.into(),
            };
            (short_percent(row.cost.percent_of(waits.time.whole)), text)
        })
        .collect()
}
