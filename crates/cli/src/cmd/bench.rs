//! `plumb bench`: what this machine takes for things that profiles blame.

mod fork;

use anyhow::Result;

use crate::examples;
use crate::exit::Exit;

/// Arguments of `plumb bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::BENCH)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Measure fork, vfork and posix_spawn from parents of different sizes
    Fork(fork::Args),
}

/// Runs `plumb bench`.
pub fn run(args: Args) -> Result<Exit> {
    match args.what {
        What::Fork(args) => fork::run(args),
    }
}
