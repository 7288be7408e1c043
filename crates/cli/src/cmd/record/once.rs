//! A recording that another command makes, to look at it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumb_capture_api::TargetObserver;
use plumb_profile::Profile;
use plumb_target::Prints;

use crate::newfile::{self, Access, Destination};
use crate::words::parsed;

/// What is recorded, and how.
#[derive(Default)]
pub(in crate::cmd) struct Once<'a> {
    pub frequency: u32,
    pub duration: Option<f64>,
    pub capture: Option<&'a str>,
    /// Words of `plumb record` that say whom, before `--`.
    pub whom: Vec<OsString>,
    /// The command to record, if it is one.
    pub command: &'a [OsString],
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
        let code = super::run_beside(self.args(path)?, beside)?;
        if !path.exists() {
            // Nothing was recorded, or there was no room for it, and it is somewhere else.
            return Ok(Err(if code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }));
        }
        Ok(Ok((crate::load::load(path)?, code)))
    }

    fn args(self, output: &Path) -> Result<super::Args> {
        let mut words: Vec<OsString> = vec!["--quiet".into()];
        words.extend(["--frequency".into(), self.frequency.to_string().into()]);
        words.extend(["--output".into(), output.into()]);
        if let Some(seconds) = self.duration {
            words.extend(["--duration".into(), seconds.to_string().into()]);
        }
        if let Some(how) = self.capture {
            words.extend(["--capture".into(), how.into()]);
        }
        words.extend(self.whom);
        if !self.command.is_empty() {
            words.push("--".into());
            words.extend(self.command.iter().cloned());
        }
        let mut args: super::Args = parsed("record", &words).context("recording")?;
        args.scope.prints = self.prints;
        Ok(args)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_recorded_as_record_would() {
        let words: Vec<OsString> = ["A=b", "sh", "-c", "true"].map(Into::into).into();
        let once = Once { frequency: 99, duration: Some(1.5), command: &words, ..Once::default() };
        let args = once.args(Path::new("/x/y.plumb")).expect("record takes it");
        assert_eq!((&args.output, &args.scope.command), (&"/x/y.plumb".into(), &words));
        let pids = vec!["--pid".into(), "1,2".into()];
        let once = Once { frequency: 1, capture: Some("bpf"), whom: pids, ..Once::default() };
        assert_eq!(once.args(Path::new("x")).expect("record takes it").scope.pid, [1, 2]);
    }
}
