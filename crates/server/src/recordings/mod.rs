//! Recordings as a server shows them: loaded once, read only.
//!
//! Invariant: an answer depends on the recording and the parameters alone; nothing here changes what was loaded. Documents are made by
//! `plumb_report`, as commands print them. Not here: how files are read (`cli`), HTTP (`routes`).

mod answers;
mod compare;
mod export;
mod listing;
mod selected;

use std::sync::Arc;

use plumb_profile::Profile;
use serde::Serialize;

pub(crate) use answers::{Answer, PATHS, Question};

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
pub struct ServedRecording {
    /// Name of its file.
    pub name: String,
    /// Its samples, with readable symbols.
    pub profile: Arc<Profile>,
    /// What it lacks.
    pub lacks: Vec<Lack>,
}

/// The recordings of a server. A recording's id is its place, counted from 0.
#[derive(Clone, Debug, Default)]
pub struct Recordings(Arc<[ServedRecording]>);

impl Recordings {
    /// These.
    pub fn new(recordings: Vec<ServedRecording>) -> Self {
        Self(recordings.into())
    }

    /// The recording of an id.
    pub(crate) fn get(&self, id: &str) -> Option<&ServedRecording> {
        self.0.get(id.parse::<usize>().ok()?)
    }

    /// All, with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &ServedRecording)> {
        self.0.iter().enumerate()
    }
}
