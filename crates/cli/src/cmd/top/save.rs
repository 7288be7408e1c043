//! Saves the recording so far to a file while the display goes on.

use std::path::Path;
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use plumb_profile::Profile;
use plumb_symbolize::{Options, symbolize};

use crate::recording::output::Output;

/// At most one recording that is being written.
#[derive(Default)]
pub(super) struct Saving {
    thread: Option<JoinHandle<Result<String>>>,
}

impl Saving {
    /// Starts writing, unless another recording is being written.
    pub fn begin(&mut self, mut profile: Profile, path: &Path, names: Options) -> String {
        if self.thread.is_some() {
            return "still writing the last one".into();
        }
        let path = path.to_owned();
        let save = move || {
            let output = Output::check(&path)?;
            // Looks up the names that are still missing.
            symbolize(&mut profile, &names, &mut |_| {});
            let written = output.write(&profile)?;
            let (path, bytes) = written.place();
            Ok(format!("{} written ({:.2} MB)", path.display(), bytes as f64 / 1e6))
        };
        match std::thread::Builder::new().name("save".into()).spawn(save) {
            Ok(thread) => {
                self.thread = Some(thread);
                "writing…".into()
            }
            Err(error) => format!("not written: {error}"),
        }
    }

    /// The result message, once writing has finished.
    pub fn done(&mut self) -> Option<String> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) { self.wait() } else { None }
    }

    /// Waits until writing has finished, and returns the result message.
    pub fn wait(&mut self) -> Option<String> {
        let thread = self.thread.take()?;
        let outcome =
            thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that writes the recording panicked")));
        Some(outcome.unwrap_or_else(|error| format!("not written: {error:#}")))
    }
}
