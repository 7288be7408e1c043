//! `plumb script`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb script`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb script`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
