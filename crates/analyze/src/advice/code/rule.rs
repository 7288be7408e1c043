//! Definition of rules on user code.
//!
//! The rules themselves are elsewhere.

use super::gain::GainModel;
use super::spent::{Code, Spent};
use crate::advice::Rule;

/// Kind of code that a rule concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Functions, including their callees.
    Calls,
    /// Instructions: a part of their functions' own time.
    Instructions,
    /// All code of files.
    Files,
}

/// A rule on user code.
pub(super) struct CodeRule {
    pub(super) rule: Rule,
    /// Model of the gain from the remedy.
    pub(super) gain: GainModel,
    pub(super) extent: Extent,
    /// Minimum share of CPU time, in percent.
    pub(super) least_percent: f64,
    pub(super) find: fn(&Code<'_, '_>) -> Spent,
}
