//! `plumb bench`: what this machine takes for things that profiles blame.

mod fork;

use std::process::ExitCode;

use anyhow::Result;

/// Arguments of `plumb bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Starting a program from parents of different sizes: fork, vfork and posix_spawn
    Fork(fork::Args),
}

/// Runs `plumb bench`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Fork(args) => fork::run(args),
    }
}
