//! Folded stacks of one event, as flame graph tools read them.
//!
//! Elsewhere: the format (`formats`).

use std::io::{self, Write};

use plumb_analyze::{Filter, View, is_clock};
use plumb_formats::folded::{self, FoldedOptions};
use plumb_profile::Profile;

/// Writes the samples that a filter of one event keeps: their number for a clock, their weight for any other event, whose samples may represent many.
/// `options.samples` is ignored; `weights`: use weights for a clock too.
///
/// # Errors
/// Writing fails.
pub fn write(
    profile: &Profile,
    filter: &Filter,
    (options, weights): (&FoldedOptions, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let kept = View::new(profile, filter).to_profile();
    let event = filter.event.map(|event| profile.strings.get(profile.events[event].name));
    let is_weighed = weights || event.is_some_and(|event| !event.is_empty() && !is_clock(event));
    folded::write(&kept, &FoldedOptions { samples: !is_weighed, ..*options }, out)
}
