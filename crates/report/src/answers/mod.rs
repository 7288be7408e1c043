//! What can be asked of a recording that was loaded: one function a path, of the recording and the parameters alone.
//!
//! The server answers with these over HTTP; a page in one file has the answers on one selection inside. Not here: how files are read
//! (`cli`), HTTP (`server`), files of other formats (`server`).

mod calls;
mod code;
mod compare;
mod lines;
mod over_time;
mod parameters;
mod paths;
mod selected;

use std::fmt;
use std::sync::Arc;

use plumb_profile::Profile;
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::explain::NamedFiles;
pub use parameters::Parameters;
pub use paths::PATHS;
pub use selected::Selected;

/// Missing data of a recording, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// Samples that it is about.
    pub samples: u64,
    /// What helps; empty if nothing is known.
    pub remedy: String,
}

/// A recording with its name.
#[derive(Clone, Debug)]
pub struct LoadedRecording {
    /// Name of its file.
    pub name: String,
    /// Its samples, with readable symbols.
    pub profile: Arc<Profile>,
    /// What it lacks.
    pub lacks: Vec<Lack>,
    /// What counted its system calls: a document of `plumb kernel --calls`. Such a file has no samples.
    pub calls: Option<Arc<Value>>,
}

impl LoadedRecording {
    /// Its line in a list. `id`: its place in the list.
    pub fn entry(&self, id: usize) -> Value {
        let meta = &self.profile.meta;
        json!({
            "id": id.to_string(),
            "name": self.name,
            "command": meta.command,
            "start_unix_ns": meta.start_unix_ns,
            "duration_ns": meta.duration_ns,
            "samples": self.profile.samples.len(),
            "has_calls": self.calls.is_some(),
        })
    }
}

/// A body with its content type.
pub type Answer = (&'static str, Vec<u8>);

/// What answers a path.
pub type AnswerFn = fn(&Question<'_>) -> Result<Answer, AnswerError>;

/// What is asked of which recording.
pub struct Question<'a> {
    /// All recordings. A recording's id is its place, counted from 0.
    pub recordings: &'a [LoadedRecording],
    /// The one that is asked about.
    pub recording: &'a LoadedRecording,
    /// Selection words and those of the answer.
    pub parameters: &'a Parameters,
    /// Whether files may be read that the recording names.
    pub named_files: NamedFiles,
}

/// The recording of an id.
pub fn recording<'a>(recordings: &'a [LoadedRecording], id: &str) -> Option<&'a LoadedRecording> {
    recordings.get(id.parse::<usize>().ok()?)
}

/// Why there is no answer: a sentence for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The parameters are wrong.
    Invalid(String),
    /// There is nothing of that name.
    NotFound(String),
    /// A fault of plumb.
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

/// A document as a body.
fn body(document: &Value) -> Result<Answer, AnswerError> {
    Ok(("application/json", serde_json::to_vec(document)?))
}
