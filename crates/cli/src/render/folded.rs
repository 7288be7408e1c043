//! Folded stacks of one event, as flame graph tools read them.
//!
//! Not here: the format (formats).

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{View, is_clock};
use plumb_formats::folded;
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::terminal::say;

/// Writes what the filters keep of one event: the weights of different ones can't be added up. The first, unless one was asked for; of
/// others a message says that they are there. `weights`: also of a clock.
pub fn write(
    profile: &Profile,
    filters: &FilterArgs,
    annotate: bool,
    weights: bool,
    out: &mut impl Write,
) -> Result<()> {
    let inlined = !filters.samples.no_inline;
    let filters = filters.filter_per_event(profile)?;
    let Some((filter, others)) = filters.split_first() else { return Ok(()) };
    if !others.is_empty() {
        say!("{} events more in the profile: choose with --event", others.len());
    }
    let kept = View::new(profile, filter).to_profile();
    let event = filter.event.map(|event| profile.strings.get(profile.events[event].name));
    let is_weighed = weights || event.is_some_and(|event| !event.is_empty() && !is_clock(event));
    Ok(folded::write(&kept, &folded::FoldedOptions { inlined, annotate, samples: !is_weighed }, out)?)
}
