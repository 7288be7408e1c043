//! Folded stacks of one event, as flame graph tools read them.
//!
//! Elsewhere: the format (`formats`).

use std::io::{self, Write};

use plumb_analyze::{Filter, View, is_clock};
use plumb_formats::folded::{self, FoldedOptions};

/// Writes the samples of a view of one event, which `filter` made: their number for a clock, their weight for any other event, whose samples
/// may represent many, and where their number is unknown.
/// `options.samples` is ignored; `weights`: use weights for a clock too.
///
/// # Errors
/// Writing fails.
pub fn write(
    view: &View<'_>,
    filter: &Filter,
    (options, weights): (&FoldedOptions, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let (kept, profile) = (view.to_profile(), view.profile());
    let event = filter.event.map(|event| profile.strings.get(profile.events[event].name));
    let is_weighed = weights
        || profile.meta.untold.samples
        || event.is_some_and(|event| !event.is_empty() && !is_clock(event));
    folded::write(&kept, &FoldedOptions { samples: !is_weighed, ..*options }, out)
}
