//! Folded stacks of one event, as flame graph tools read them.
//!
//! Not here: what is written (`documents`), the format (formats).

use std::io::Write;

use anyhow::Result;
use plumb_analyze::View;
use plumb_documents::folded;
use plumb_formats::folded::FoldedOptions;
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
    let options = FoldedOptions { inlined, annotate, ..FoldedOptions::default() };
    Ok(folded::write(&View::new(profile, filter), filter, (&options, weights), out)?)
}
