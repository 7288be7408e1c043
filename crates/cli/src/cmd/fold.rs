//! `plumb fold`: folded stacks, one line a distinct stack, for flame graph tools.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use plumb_analyze::{View, is_clock};
use plumb_formats::folded;

use crate::filters::FilterArgs;
use crate::terminal::{Output, finish};

/// Arguments of `plumb fold`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Mark kernel frames with `_[k]`, inlined calls with `_[i]` and JIT code with `_[j]`
    #[arg(long)]
    annotate: bool,
    /// Count in the event's unit (nanoseconds of cpu-clock) instead of samples, as is done anyway for events that are no clock
    #[arg(long)]
    weights: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb fold`.
pub fn run(args: Args) -> Result<ExitCode> {
    let profile = crate::load::load(&args.file)?;
    let filters = args.filters.filter_per_event(&profile)?;
    let Some((filter, others)) = filters.split_first() else { return Ok(ExitCode::SUCCESS) };
    if !others.is_empty() {
        eprintln!("plumb: {} events more in {}: choose with --event", others.len(), args.file.display());
    }
    let kept = View::new(&profile, filter).to_profile();
    let event = filter.event.map(|event| profile.strings.get(profile.events[event].name));
    // A sample of page faults may stand for one or for a thousand.
    let weights = args.weights || event.is_some_and(|event| !event.is_empty() && !is_clock(event));
    let options = folded::Options { inlined: !args.filters.no_inline, annotate: args.annotate, weights };
    let mut out = Output::stdout();
    let written = folded::write(&kept, &options, &mut out).and_then(|()| out.flush());
    finish(written.map_err(Into::into))
}
