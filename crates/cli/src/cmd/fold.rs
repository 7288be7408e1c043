//! `plumb fold`: folded stacks, one line a distinct stack, for flame graph tools.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::args::FilterArgs;
use crate::examples;
use crate::exit::Exit;
use crate::render::folded::write;
use crate::terminal::{Output, finish};

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
    /// because each of its samples may represent many occurrences. Where a file has costs but not the
    /// number of its samples (callgrind), counts are weights as well. `plumb export --format folded` writes the same.
    #[arg(long)]
    weights: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb fold`.
pub fn run(args: Args) -> Result<Exit> {
    let profile = crate::load::load(&args.file, &args.filters.symfs)?;
    let Args { annotate, weights, .. } = args;
    let mut out = Output::stdout();
    finish(write(&profile, &args.filters, annotate, weights, &mut out).and_then(|()| Ok(out.flush()?)))
}
