//! `plumb open`: shows recordings in the browser.
//!
//! Not here: serving (`showing`).

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use crate::examples;
use crate::exit::Exit;
use crate::loaded;
use crate::showing;

/// Arguments of `plumb open`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::OPEN)]
pub struct Args {
    /// Recordings, or profiles of other tools
    #[arg(value_name = "FILE", default_value = "profile.plumb")]
    files: Vec<PathBuf>,
    /// Address to listen on
    ///
    /// Without it, the first free port of 127.0.0.1 from 4041. Only loopback addresses are allowed.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

/// Runs `plumb open`.
pub fn run(args: Args) -> Result<Exit> {
    let recordings = args.files.iter().map(|file| loaded::load(file)).collect::<Result<_>>()?;
    showing::show(recordings, args.listen, true)?;
    Ok(Exit::Success)
}
