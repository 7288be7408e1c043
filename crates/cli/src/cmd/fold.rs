//! `plumb fold`: folded stacks, one line a distinct stack, for flame graph tools.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use plumb_analyze::View;
use plumb_formats::folded;
use plumb_profile::Profile;

use crate::filters::FilterArgs;
use crate::terminal::{Output, finish, say};

/// Arguments of `plumb fold`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Mark kernel frames with `_[k]`, inlined calls with `_[i]` and JIT code with `_[j]`
    #[arg(long)]
    annotate: bool,
    /// Count samples instead of their weights, which are in the event's unit (nanoseconds of cpu-clock)
    ///
    /// A sample may represent many events: equal stacks may have been counted as one while recording, and time off the processor differs from
    /// sample to sample. Without this option, counts add up to what `plumb report` shows, as in `plumb export --format folded`.
    #[arg(long)]
    samples: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb fold`.
pub fn run(args: Args) -> Result<ExitCode> {
    let profile = crate::load::load(&args.file)?;
    let Args { annotate, samples, .. } = args;
    let options = folded::Options { inlined: !args.filters.no_inline, annotate, samples };
    let mut out = Output::stdout();
    finish(write(&profile, &args.filters, &options, &mut out).and_then(|()| Ok(out.flush()?)))
}

/// Writes what the filters keep of one event: the weights of different ones can't be added up. The first, unless one was asked for; of
/// others a message says that they are there.
pub(super) fn write(
    profile: &Profile,
    filters: &FilterArgs,
    options: &folded::Options,
    out: &mut impl Write,
) -> Result<()> {
    let filters = filters.filter_per_event(profile)?;
    let Some((filter, others)) = filters.split_first() else { return Ok(()) };
    if !others.is_empty() {
        say!("{} events more in the profile: choose with --event", others.len());
    }
    let kept = View::new(profile, filter).to_profile();
    Ok(folded::write(&kept, options, out)?)
}
