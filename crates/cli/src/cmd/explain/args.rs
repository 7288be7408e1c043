//! Arguments of `plumb explain`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::args::{FilterArgs, RecordArgs, TargetArgs, value};
use crate::examples;

/// File read by default.
pub(super) const DEFAULT_FILE: &str = "profile.plumb";

/// Arguments of `plumb explain`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb explain [OPTIONS] [FILE]\n       plumb explain [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb explain [OPTIONS] -p PID[,PID]...",
    after_help = examples::EXPLAIN
)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = DEFAULT_FILE, conflicts_with = "target")]
    pub(super) file: PathBuf,
    /// Smallest CPU share still worth optimizing
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = value::percent)]
    pub(super) threshold: f64,
    /// Off-CPU recording of the same command (plumb record --off-cpu), to explain its waits
    #[arg(long, value_name = "FILE")]
    pub(super) waits: Option<PathBuf>,
    /// Print all sections, not one screen (as --md and --html do)
    #[arg(long, conflicts_with = "json")]
    pub(super) full: bool,
    /// Print Markdown
    #[arg(long, conflicts_with_all = ["html", "json"])]
    pub(super) md: bool,
    /// Write a self-contained HTML page to standard output, or to COMMAND.html on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) html: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Save the recording to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Command to record; with --json, --md and --html its output goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["file", "target"])]
    pub(super) command: Vec<OsString>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) recording: RecordArgs,
    #[command(flatten)]
    pub(super) filters: FilterArgs,
}

impl Args {
    /// Whether a command is recorded, instead of reading a file.
    pub(super) fn records(&self) -> bool {
        self.target.names_target() || !self.command.is_empty()
    }

    /// The recording to read; `None` if one is made.
    pub(super) fn reads(&self) -> Option<&Path> {
        (!self.records()).then_some(&*self.file)
    }

    /// The file that holds the recording afterwards, if any.
    pub(super) fn kept(&self) -> Option<&Path> {
        self.reads().or(self.output.as_deref())
    }

    pub(super) fn is_kept(&self) -> bool {
        self.kept().is_some()
    }
}
