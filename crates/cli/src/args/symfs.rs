//! The place of the recorded programs and libraries.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// The place of the recorded programs and libraries.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
pub struct SymfsArgs {
    /// Look for recorded programs and libraries below DIR only
    ///
    /// For recordings of another machine: DIR has its files in a tree (DIR/usr/bin/app) or side by side (DIR/app). Names, lines, code and the rules by which
    /// the stacks of a perf.data are unwound come from there. A file with another build ID than the recorded one is not used.
    #[arg(long, value_name = "DIR", help_heading = "Options", value_parser = PathBufValueParser::new().try_map(searchable))]
    symfs: Option<PathBuf>,
}

impl SymfsArgs {
    /// The directory.
    pub fn directory(&self) -> Option<&Path> {
        self.symfs.as_deref()
    }
}

/// A directory in which files can be looked up.
fn searchable(path: PathBuf) -> Result<PathBuf, &'static str> {
    match path.join(".").metadata() {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err("permission denied; try sudo"),
        Err(_) if path.exists() => Err("not a directory"),
        Err(_) => Err("no such directory"),
    }
}
