//! Advice on user code, from samples alone: what the functions on their stacks tell.
//!
//! Rules that only list functions are data (`rules/*.toml`); a file here holds those that look at instructions, loops, lines or threads. A rule
//! holds where the lower end of the share's interval reaches its threshold: what samples can't resolve is no cause. What can be
//! gained is bounded by the share's upper end. Bounds of several rules overlap where their functions call each other.

pub(super) mod channels;
pub(super) mod clones;
mod companions;
mod faults;
pub(super) mod first_touch;
mod gain;
pub(super) mod growth;
pub(super) mod instructions;
mod language;
pub(super) mod loops;
mod names;
pub(super) mod python;
pub(super) mod regex_compile;
mod rule;
mod scripts;
mod spent;
pub(super) mod thread_start;
pub(super) mod unoptimised;
pub(super) mod virtual_calls;

use super::registry::code_rules;
use super::sentence::{at_least, part, percent, size, text, word};
use super::{LEAST_SAMPLES, Rule};
use crate::annotate::SourcePlace;
use crate::cost::Cost;
use crate::explain::ReadCode;
use crate::frame::{FrameIndex, SymbolId};
use crate::loops::{CacheSizes, LoopFinding};
use crate::own_code::OwnCode;
use crate::share::{Sampling, Share};
use crate::view::View;
pub(super) use gain::GainModel;
pub use gain::Prediction;
pub(super) use language::Language;
pub(super) use names::Names;
pub use python::ScriptSources;
pub use rule::Extent;
pub(super) use rule::{Activity, CodeRule};
pub(super) use spent::Code;
use spent::Spent;

/// A rule that holds.
#[derive(Clone, Debug)]
pub struct CodeAdvice {
    /// The rule.
    pub rule: &'static Rule,
    /// The part of the code that the rule concerns.
    pub extent: Extent,
    /// The functions concerned, each with its cost; most expensive first.
    pub functions: Vec<(FrameIndex, Cost)>,
    /// Callers of these functions, each with the cost of its calls.
    pub callers: Vec<(FrameIndex, Cost)>,
    /// Frames of the user's own code that cause this work, each with its cost; most expensive first.
    pub places: Vec<(FrameIndex, Cost)>,
    /// The predicted gain of the remedy, if a model is valid.
    pub gain: Option<Prediction>,
    /// Total cost.
    pub cost: Cost,
    /// The share of this cost.
    pub share: Share,
    /// Findings about the loops concerned, most expensive first; empty for rules that do not examine loops.
    pub loops: Vec<LoopFinding>,
    /// Line of the user's own code for the first of these loops, if known.
    pub at: Option<SourcePlace>,
    /// The larger cause that most of this is a part of.
    pub within: Option<&'static str>,
    /// The rule names the activity that takes the time, not a reason: whether the program does more of it than necessary is unknown.
    pub is_activity: bool,
    /// Cost by innermost function.
    own: Vec<(SymbolId, Cost)>,
}

impl CodeAdvice {
    /// Returns the part of the cost that was spent in a function itself.
    pub(crate) fn own_of(&self, symbol: SymbolId) -> Cost {
        let found = self.own.iter().find(|&&(known, _)| known == symbol);
        found.map_or(Cost::default(), |&(_, cost)| cost)
    }

    /// Whether threads are what it is about, with their ends.
    pub(crate) fn is_of_threads(&self) -> bool {
        self.rule.name == thread_start::NAME
    }

    /// Whether it is all page faults that it is about.
    pub(crate) fn is_of_faults(&self) -> bool {
        self.rule.name == first_touch::NAME
    }
}

/// A rule that holds, with what was spent and its share.
type Found = (&'static CodeRule, Spent, Share);

/// The rules that hold for the CPU time that `view` keeps, by descending possible gain.
pub(crate) fn advise_code(
    (view, own): (&View<'_>, &OwnCode),
    (code, sources): (&[ReadCode<'_>], &ScriptSources),
    sampling: &Sampling,
    caches: CacheSizes,
) -> Vec<CodeAdvice> {
    let code = Code::new(view, own, (code, sources), caches);
    let mut found: Vec<Found> = Vec::new();
    for rule in code_rules() {
        let mut spent = (rule.find)(&code);
        let share = sampling.share(spent.cost);
        if share.low >= rule.least_percent && spent.cost.samples >= LEAST_SAMPLES {
            spent.elsewhere += code.elsewhere(&spent);
            found.push((rule, spent, share));
        }
    }
    found.sort_by(|one, other| (other.1.cost, one.0.rule.name).cmp(&(one.1.cost, other.0.rule.name)));
    // A cause that calls another is the reason for it; else the larger one contains the smaller.
    let within = |at: usize| {
        let own = &found[at].1;
        let is_most = |outer: &Spent| code.common(own, outer).weight.saturating_mul(2) >= own.cost.weight;
        let is_outer = |other: usize| {
            if found[at].0.apart_from == Some(found[other].0.rule.name) {
                return false;
            }
            let outer = &found[other].1;
            match (code.is_for(own, outer), code.is_for(outer, own)) {
                (true, false) => true,
                (false, true) => false,
                _ => other < at && is_most(outer),
            }
        };
        (0..found.len()).find(|&other| other != at && is_outer(other)).map(|outer| found[outer].0.rule.name)
    };
    let mut within: Vec<Option<&str>> = (0..found.len()).map(within).collect();
    call_backs_first(&code, &found, &mut within);
    let left = unclaimed(&code, &found, &within);
    let advice = |(((rule, spent, share), within), left): ((Found, _), f64)| {
        let gain = rule.gain.predict(&spent, share, sampling).map(|gain| gain.scaled(left));
        let is_activity = rule.is_activity(share, &code, &spent);
        let Spent { cost, functions, callers, places, own, loops, at, .. } = spent;
        let whose = places.first().or(functions.first()).map(|one| view.frame(one.0));
        CodeAdvice {
            rule: rule.in_words_of(whose.and_then(Language::of)),
            extent: rule.extent,
            functions,
            callers,
            places,
            gain,
            cost,
            share,
            loops,
            at,
            within,
            is_activity,
            own,
        }
    };
    found.into_iter().zip(within).zip(left).map(advice).collect()
}

/// Of each finding the part, 0 to 1, that no finding before it has: the gain of a share is promised once. Findings that are a part of
/// another, which promise nothing beside it, claim nothing.
fn unclaimed(code: &Code<'_, '_>, found: &[Found], within: &[Option<&'static str>]) -> Vec<f64> {
    let left = |at: usize| {
        let own = &found[at].1;
        let others = (0..at).filter(|&other| within[at].is_none() && within[other].is_none());
        let claimed: u64 = others.map(|other| code.common(own, &found[other].1).weight).sum();
        1.0 - (claimed as f64 / own.cost.weight.max(1) as f64).min(1.0)
    };
    (0..found.len()).map(left).collect()
}

/// Prefers a cause in code that a library calls back over the call of the library, as it says more.
fn call_backs_first(code: &Code<'_, '_>, found: &[Found], within: &mut [Option<&'static str>]) {
    for outer in (0..found.len()).filter(|&at| within[at].is_none()).collect::<Vec<_>>() {
        let (rule, all, _) = &found[outer];
        let calls_back = rule.activity.as_ref().is_some_and(|activity| activity.calls_back);
        let is_reason = |at: usize| {
            let part = || code.common(&found[at].1, all).weight;
            calls_back && at != outer && part().saturating_mul(2) >= all.cost.weight
        };
        if let Some(inner) = (0..found.len()).find(|&at| is_reason(at)) {
            (within[inner], within[outer]) = (None, Some(found[inner].0.rule.name));
        }
    }
}
