//! `plumb script`: every sample as `perf script` prints it, so that tools which read that read plumb.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Result;
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::examples;
use crate::exit::Exit;
use crate::render::perf_script::{self, Fields};
use crate::terminal::{Output, finish};

/// Arguments of `plumb script`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::SCRIPT)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Fields to print; + or - before each adds to or removes from the default
    ///
    /// Fields: comm,tid,pid,time,cpu,event,ip,sym,symoff,dso,srcline,period. The default is all but pid and srcline.
    #[arg(short = 'F', long, value_name = "FIELD,...", allow_hyphen_values = true, default_value_t)]
    fields: Fields,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb script`.
pub fn run(args: Args) -> Result<Exit> {
    let profile = crate::load::load(&args.file, &args.filters.symfs)?;
    let mut out = Output::stdout();
    finish(write(&profile, args.fields, &args.filters, &mut out))
}

/// Writes what the filters keep of a profile.
pub(crate) fn write(
    profile: &Profile,
    fields: Fields,
    filters: &FilterArgs,
    out: &mut Output<'_>,
) -> Result<()> {
    Ok(perf_script::write(profile, fields, &filters.filter(profile)?, out)?)
}
