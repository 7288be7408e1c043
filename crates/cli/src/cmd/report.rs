//! `plumb report`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb report`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb report`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
