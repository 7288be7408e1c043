//! `plumb doctor`.

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb doctor`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `plumb doctor`.
pub fn run(_args: Args) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
