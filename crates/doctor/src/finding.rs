//! A line of the diagnosis.

use serde::Serialize;

/// State of a checked feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// Works fully.
    #[serde(rename = "ok")]
    Good,
    /// Works in part.
    Limited,
    /// Does not work.
    Missing,
}

/// One line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The state of the feature.
    pub state: FindingState,
    /// The checked feature.
    pub what: String,
    /// The result.
    pub says: String,
    /// The remedy, usually a command to type; empty if none is needed.
    pub remedy: String,
}

impl Finding {
    /// Creates a finding without a remedy.
    pub fn new(state: FindingState, what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { state, what: what.into(), says: says.into(), remedy: String::new() }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}
