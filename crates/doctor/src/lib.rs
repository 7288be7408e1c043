//! Checks of a machine, for what this user may record there and how to allow more, and of a recording, for its gaps and their causes.
//!
//! Invariant: a feature is tried, not guessed from a version. Each finding that is not good has a remedy, if there is one.
//!
//! Not here: causes of truncated stacks (`stack-quality`), anything that is shown.

#![forbid(unsafe_code)]

mod facts;
mod features;
mod finding;
mod machine;
mod recording;
mod uprobes;

use plumb_profile::Profile;
use serde::Serialize;

pub use facts::MachineFacts;
pub use features::ProgramTrial;
pub use finding::{Finding, FindingState};

/// Version of the JSON structure. The first number changes when a field is removed or changes its meaning.
pub const SCHEMA: &str = "1.0";

/// A diagnosis of a machine or a recording, as a document (docs/doctor.md).
#[derive(Serialize)]
pub struct Diagnosis {
    /// Version of plumb's JSON as a whole.
    version: u32,
    /// Version of this structure.
    schema: &'static str,
    /// Version of plumb.
    plumb: &'static str,
    /// The checked machine or recording, in one line.
    pub subject: String,
    /// Facts about the machine; missing for a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<MachineFacts>,
    /// Result of loading each BPF program; empty for a recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramTrial>,
    /// The findings, in the order in which they are shown.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Creates a diagnosis of findings alone.
    pub fn new(subject: String, findings: Vec<Finding>) -> Self {
        let (host, programs) = (None, Vec::new());
        let version = plumb_documents::JSON_VERSION;
        Self { version, schema: SCHEMA, plumb: env!("CARGO_PKG_VERSION"), subject, host, programs, findings }
    }

    /// Checks this machine, for this user. Loads each BPF program as a trial.
    pub fn of_machine() -> Self {
        machine::diagnosis()
    }

    /// Checks a recording. `subject`: its name.
    pub fn of_recording(subject: String, profile: &Profile) -> Self {
        Self::new(subject, recording::findings(profile))
    }
}
