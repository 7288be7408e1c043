//! `plumb open`: shows recordings in the browser.
//!
//! Not here: serving (`showing`).

use std::path::PathBuf;

use anyhow::Result;

use crate::examples;
use crate::exit::Exit;
use crate::loaded;
use crate::showing::{self, ShowArgs};

/// Arguments of `plumb open`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::OPEN)]
pub struct Args {
    /// Recordings, profiles of other tools, or what `plumb kernel --calls --json` wrote
    #[arg(value_name = "FILE", default_value = "profile.plumb")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Runs `plumb open`.
pub fn run(args: Args) -> Result<Exit> {
    let recordings =
        args.files.iter().map(|file| loaded::load(file, &args.show.symfs)).collect::<Result<_>>()?;
    showing::show(recordings, args.show, true)?;
    Ok(Exit::Success)
}
