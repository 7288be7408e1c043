//! `plumb fold`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb fold`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb fold`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
