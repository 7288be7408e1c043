//! What a rule on user code is.
//!
//! Not here: the rules.

use super::gain::GainModel;
use super::spent::{Code, Spent};
use crate::advice::Rule;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Functions, with all that they call.
    Calls,
    /// Instructions of functions: a part of what these take themselves.
    Instructions,
    /// All code of files.
    Files,
}

/// A rule on user code.
pub(super) struct CodeRule {
    pub(super) rule: Rule,
    /// What its remedy gains.
    pub(super) gain: GainModel,
    pub(super) extent: Extent,
    /// From this share of processor time, in percent.
    pub(super) least_percent: f64,
    pub(super) find: fn(&Code<'_, '_>) -> Spent,
}
