//! `plumb generate`: manual pages and completions for shells, made of what `--help` is made of.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::Shell;

use crate::examples;
use crate::exit::Exit;
use crate::terminal::{say, stdout_bytes};

/// Arguments of `plumb generate`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::GENERATE)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Write one manual page per command into a directory
    #[command(after_help = examples::MAN)]
    Man {
        /// Directory, such as /usr/local/share/man/man1; created if missing
        directory: PathBuf,
    },
    /// Print the completions of a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Shell
        shell: Shell,
    },
}

/// Runs `plumb generate`. `command`: the whole command line.
pub fn run(args: Args, mut command: clap::Command) -> Result<Exit> {
    match args.what {
        What::Man { directory } => {
            let shown = directory.display();
            fs::create_dir_all(&directory).with_context(|| format!("cannot make {shown}"))?;
            clap_mangen::generate_to(command, &directory)
                .with_context(|| format!("cannot write to {shown}"))?;
            say!("wrote manual pages to {shown}");
        }
        // The text is clap's: it holds no name that somebody else chose.
        What::Completions { shell } => {
            clap_complete::generate(shell, &mut command, "plumb", &mut stdout_bytes()?);
        }
    }
    Ok(Exit::Success)
}
