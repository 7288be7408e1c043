//! A recording that another command makes, to look at it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumb_capture_api::TargetObserver;
use plumb_profile::Profile;
use plumb_target::Prints;

use crate::args::{EventArgs, RecordArgs, TargetArgs};
use crate::newfile::{self, Access, Destination};

/// What is recorded, and how.
#[derive(Default)]
pub(in crate::cmd) struct Once<'a> {
    /// Whom to record; nobody: the command.
    pub target: TargetArgs,
    pub recording: RecordArgs,
    pub command: Vec<OsString>,
    /// Where what the command prints goes.
    pub prints: Prints,
    /// Where the recording stays; `None`: it is only looked at.
    pub output: Option<&'a Path>,
}

/// Where what a command prints goes whose report goes to standard output. `is_data`: that is for a program or a file, in which nothing
/// else may stand.
pub(in crate::cmd) fn prints_beside(is_data: bool) -> Prints {
    if is_data { Prints::AsErrors } else { Prints::Through }
}

impl Once<'_> {
    /// Records. Gives back the profile, and the exit code that is the command's; `Err` in it: there is no profile, and why has been
    /// said. `beside`: what watches the target beside.
    pub fn record(
        self,
        beside: Option<&mut dyn TargetObserver>,
    ) -> Result<Result<(Profile, ExitCode), ExitCode>> {
        let temporary = match self.output {
            Some(path) if !matches!(Destination::of(path)?, Destination::File(_)) => {
                bail!("{}: the recording is kept in a file; name one", path.display())
            }
            Some(_) => None,
            None => Some(Temporary::new()?),
        };
        let path = self.output.unwrap_or_else(|| temporary.as_ref().map_or(Path::new(""), |file| &file.0));
        let code = super::run_beside(self.args(path), beside)?;
        if !path.exists() {
            // Nothing was recorded, or there was no room for it, and it is somewhere else.
            return Ok(Err(if code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }));
        }
        Ok(Ok((crate::load::load(path)?, code)))
    }

    fn args(self, output: &Path) -> super::Args {
        let Self { target, recording, command, prints, .. } = self;
        let scope = super::Scope { prints, command, target, recording, events: EventArgs::default() };
        super::Args { output: output.to_owned(), quiet: true, off_cpu: false, min_block: 0, scope }
    }
}

/// A file that is gone when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    /// In the first folder that takes it.
    fn new() -> Result<Self> {
        let name = format!("plumb-once-{}.plumb", std::process::id());
        let mut paths = newfile::temporary_folders().map(|folder| folder.join(&name)).into_iter();
        let path = paths.find(|path| !path.exists() && Destination::check(path, Access::Private).is_ok());
        path.map(Temporary).context("cannot create a temporary file: set TMPDIR to a writable directory")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // There is none if nothing could be recorded.
        let _ = std::fs::remove_file(&self.0);
    }
}
