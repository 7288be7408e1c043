//! Definition of rules on user code.
//!
//! The rules themselves are elsewhere.

use serde::Deserialize;

use super::gain::GainModel;
use super::language::Language;
use super::spent::{Code, Spent};
use crate::advice::Rule;
use crate::share::Share;

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

/// Function that sums what was spent on the pattern of a rule.
type Finder = Box<dyn Fn(&Code<'_, '_>) -> Spent + Send + Sync>;

/// A rule on user code.
pub(in crate::advice) struct CodeRule {
    pub rule: Rule,
    /// The rule with its remedy in terms of a language. Other languages get the remedy of `rule`.
    pub in_language: Vec<(Language, Rule)>,
    /// Model of the gain from the remedy.
    pub gain: GainModel,
    pub extent: Extent,
    /// Minimum share of CPU time, in percent.
    pub least_percent: f64,
    pub find: Finder,
    /// The functions and files that `find` counts, in Markdown, where it is data.
    pub named: Vec<String>,
    /// Set if samples do not show whether the program does more than necessary.
    pub activity: Option<Activity>,
    /// Name of a rule whose functions only seem to be the reason: C++ flushes by an operator that otherwise formats (`<< std::endl`).
    pub apart_from: Option<&'static str>,
}

impl CodeRule {
    /// Creates a rule on calls of functions, without a model of its gain.
    pub fn new(
        rule: Rule,
        least_percent: f64,
        find: impl Fn(&Code<'_, '_>) -> Spent + Send + Sync + 'static,
    ) -> Self {
        let (in_language, find, named) = (Vec::new(), Box::new(find), Vec::new());
        let (gain, extent) = (GainModel::Unknown, Extent::Calls);
        Self { rule, in_language, gain, extent, least_percent, find, named, activity: None, apart_from: None }
    }

    /// Creates a rule on instructions.
    pub fn of_instructions(
        rule: Rule,
        least_percent: f64,
        gain: GainModel,
        find: impl Fn(&Code<'_, '_>) -> Spent + Send + Sync + 'static,
    ) -> Self {
        Self { gain, extent: Extent::Instructions, ..Self::new(rule, least_percent, find) }
    }

    /// Returns the rule with the remedy for a language.
    pub fn in_words_of(&self, language: Option<Language>) -> &Rule {
        let own = self.in_language.iter().find(|(of, _)| Some(*of) == language);
        own.map_or(&self.rule, |(_, rule)| rule)
    }

    /// Returns whether it only reports what takes the time, and not why.
    pub fn is_activity(&self, share: Share, code: &Code<'_, '_>, spent: &Spent) -> bool {
        self.activity.as_ref().is_some_and(|activity| activity.is_all(share, code, spent))
    }
}

/// A rule detects an activity: samples show that the program does it, but not whether it does more than necessary.
///
/// Samples show how long a function took, not how often it was called or whether its result was needed. Such a rule
/// names a cause only above the share that well-made programs spend on the activity. Below that, it only reports what
/// takes the time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::advice) struct Activity {
    /// Minimum share of CPU time, in percent, for the activity to be a cause; infinite: never.
    pub below: f64,
    /// Parts of the names of functions that are slow by design, however often they are needed: they restart from the beginning, or resist
    /// attacks. They are a cause.
    #[serde(borrow, default)]
    pub slow: Vec<&'static str>,
    /// The activity calls the program's own code, which explains more if it does most of the work.
    #[serde(default)]
    pub calls_back: bool,
}

impl Activity {
    /// An activity that is a cause from this share on, in percent.
    pub const fn below(below: f64) -> Option<Self> {
        Some(Self { below, slow: Vec::new(), calls_back: false })
    }

    /// Returns whether only the activity is known, and not a cause.
    fn is_all(&self, share: Share, code: &Code<'_, '_>, spent: &Spent) -> bool {
        let name = |frame| &code.view().frame(frame).name;
        let is_slow = |frame| self.slow.iter().any(|slow| name(frame).contains(slow));
        let slow = spent.functions.iter().filter(|&&(frame, _)| is_slow(frame));
        let slow: u64 = slow.map(|(_, cost)| cost.weight).sum();
        slow.saturating_mul(2) < spent.cost.weight && share.low < self.below
    }
}
