//! `plumb flame`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb flame`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb flame`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
