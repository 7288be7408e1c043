//! `plumb record`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb record`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb record`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
