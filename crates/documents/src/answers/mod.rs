//! Answers to questions about a loaded recording: one function per path, of the recording and the parameters alone.
//!
//! The server returns these over HTTP; a single-file page contains the answers for one selection. Elsewhere: reading files
//! (`cli`), HTTP (`server`), other file formats (`server`).

mod calls;
mod code;
mod compare;
mod lines;
mod over_time;
mod parameters;
mod paths;
mod selected;
mod waits;

use std::fmt;
use std::sync::Arc;

use plumb_profile::Profile;
use serde::Serialize;
use serde_json::Value;

pub use crate::explain::NamedFiles;
#[cfg(test)]
pub(crate) use calls::CallsAnswer;
#[cfg(test)]
pub(crate) use over_time::HeatmapAnswer;
pub use parameters::Parameters;
pub use paths::PATHS;
#[cfg(test)]
pub(crate) use paths::{AboutAnswer, FunctionsAnswer, Head, TreesAnswer};
pub use selected::Selected;
#[cfg(test)]
pub(crate) use waits::WaitsAnswer;

/// Missing data of a recording, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Lack {
    /// Description of the missing data.
    pub what: String,
    /// Number of samples affected.
    pub samples: u64,
    /// Advice; empty if there is none.
    pub remedy: String,
}

/// A loaded recording.
#[derive(Clone, Debug)]
pub struct LoadedRecording {
    /// Name of the file.
    pub name: String,
    /// The samples, with demangled symbols.
    pub profile: Arc<Profile>,
    /// Missing data.
    pub lacks: Vec<Lack>,
    /// Exact counts of its system calls: a document of `plumb kernel --calls`. Such a file has no samples.
    pub calls: Option<Arc<Value>>,
}

document! {
    /// A recording's entry in a list. `id` is its index in the list.
    pub struct RecordingEntry as "RecordingEntry" of (recording: &LoadedRecording, id: String) {
        /// Name in paths.
        pub id: String = id,
        name: String = recording.name.clone(),
        command: Vec<String> = recording.profile.meta.command.clone(),
        start_unix_ns: u64 = recording.profile.meta.start_unix_ns,
        duration_ns: u64 = recording.profile.meta.duration_ns,
        samples: usize = recording.profile.samples.len(),
        /// Whether it is, or has, a count of system calls. Entries that the page makes itself lack it.
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        has_calls: bool = recording.calls.is_some(),
    }
}

document! {
    /// The recordings that a server shows. `editor`: template of links to an editor; empty: no links.
    pub struct RecordingList<'a> as "RecordingList" of (recordings: &[LoadedRecording], editor: &'a str) {
        version: u32 = crate::JSON_VERSION,
        recordings: Vec<RecordingEntry> = RecordingEntry::of_all(recordings),
        editor: &'a str = editor,
    }
}

impl RecordingEntry {
    /// The entries of a list.
    pub fn of_all(recordings: &[LoadedRecording]) -> Vec<Self> {
        recordings.iter().enumerate().map(|(id, recording)| Self::new(recording, id.to_string())).collect()
    }
}

/// A response body with its content type.
pub type Answer = (&'static str, Vec<u8>);

/// A function that answers a path.
pub type AnswerFn = fn(&Question<'_>) -> Result<Answer, AnswerError>;

/// A question about a recording.
pub struct Question<'a> {
    /// All recordings. A recording's id is its index, counted from 0.
    pub recordings: &'a [LoadedRecording],
    /// The recording asked about.
    pub recording: &'a LoadedRecording,
    /// Selection words and the answer's own parameters.
    pub parameters: &'a Parameters,
    /// Whether files that the recording names may be read.
    pub named_files: NamedFiles,
}

/// Returns the recording with an id.
pub fn recording<'a>(recordings: &'a [LoadedRecording], id: &str) -> Option<&'a LoadedRecording> {
    recordings.get(id.parse::<usize>().ok()?)
}

/// The reason why a question has no answer: a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The parameters are wrong.
    Invalid(String),
    /// Nothing has this name.
    NotFound(String),
    /// An internal error of plumb.
    Internal(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(message) | Self::NotFound(message) | Self::Internal(message)) = self;
        out.write_str(message)
    }
}

impl std::error::Error for AnswerError {}

impl From<serde_json::Error> for AnswerError {
    fn from(error: serde_json::Error) -> Self {
        Self::Internal(format!("cannot write the answer: {error}"))
    }
}

/// Serializes a document as a body.
fn body(document: &impl Serialize) -> Result<Answer, AnswerError> {
    Ok(("application/json", serde_json::to_vec(&serde_json::to_value(document)?)?))
}
