//! `plumb fold`: folded stacks, one line a distinct stack, for flame graph tools.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use plumb_analyze::{View, is_clock};
use plumb_formats::folded;
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::examples;
use crate::exit::Exit;
use crate::terminal::{Output, finish, say};

/// Arguments of `plumb fold`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::FOLD)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Mark kernel frames with `_[k]`, inlined functions with `_[i]` and JIT code with `_[j]`
    #[arg(long)]
    annotate: bool,
    /// Count weights in the event's unit (nanoseconds of cpu-clock) instead of samples
    ///
    /// Without it, counts are samples for a clock (cpu-clock, cycles), as flame graph tools expect, and weights for any other event,
    /// because each of its samples may represent many occurrences. `plumb export --format folded` writes the same.
    #[arg(long)]
    weights: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb fold`.
pub fn run(args: Args) -> Result<Exit> {
    let profile = crate::load::load(&args.file)?;
    let Args { annotate, weights, .. } = args;
    let mut out = Output::stdout();
    finish(write(&profile, &args.filters, annotate, weights, &mut out).and_then(|()| Ok(out.flush()?)))
}

/// Writes what the filters keep of one event: the weights of different ones can't be added up. The first, unless one was asked for; of
/// others a message says that they are there. `weights`: also of a clock.
pub(super) fn write(
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
    Ok(folded::write(&kept, &folded::Options { inlined, annotate, samples: !is_weighed }, out)?)
}
