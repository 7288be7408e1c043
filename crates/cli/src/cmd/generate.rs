//! `plumb generate`: manual pages and completions for shells, made of what `--help` is made of.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_complete::Shell;

use crate::terminal::say;

/// Arguments of `plumb generate`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Write a manual page for each command into a directory
    Man {
        /// The directory, such as /usr/local/share/man/man1; it is made if it is missing
        directory: PathBuf,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Runs `plumb generate`. `command`: the whole command line.
pub fn run(args: Args, mut command: clap::Command) -> Result<ExitCode> {
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
            clap_complete::generate(shell, &mut command, "plumb", &mut std::io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}
