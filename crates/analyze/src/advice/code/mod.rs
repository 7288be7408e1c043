//! Advice on user code, from samples alone: what the functions on their stacks tell.
//!
//! One file holds one rule, as in [`advice`](super): the functions or instructions that it is about, from what share on it counts, what to do. A rule
//! holds where the lower end of the share's interval reaches its threshold: what samples can't resolve is no cause. What can be
//! gained is bounded by the share's upper end. Bounds of several rules overlap where their functions call each other.

mod allocation;
mod atomics;
mod clock;
mod copying;
mod division;
mod dynamic_linking;
mod exceptions;
mod first_touch;
mod formatting;
mod getenv;
mod hashing;
mod locks;
mod logging;
mod memory_wait;
mod names;
mod random;
mod reference_counts;
mod regex_compile;
mod rule;
mod sorting;
mod spent;
mod stack_traffic;
mod string_scan;
mod unoptimised;

use super::{LEAST_SAMPLES, Rule};
use crate::cost::Cost;
use crate::explain::ReadCode;
use crate::frame::{FrameIndex, SymbolId};
use crate::share::{Sampling, Share};
use crate::view::View;
use names::Names;
use rule::CodeRule;
pub use rule::Extent;
use spent::{Code, Spent};

/// A rule that holds.
#[derive(Clone, Debug)]
pub struct CodeAdvice {
    /// The rule.
    pub rule: &'static Rule,
    /// What it is about.
    pub extent: Extent,
    /// The functions that it is about, and what of each, those that took more first.
    pub functions: Vec<(FrameIndex, Cost)>,
    /// Who calls them, and what these calls took.
    pub callers: Vec<(FrameIndex, Cost)>,
    /// What all of it took.
    pub cost: Cost,
    /// The share of that.
    pub share: Share,
    /// The larger cause that most of this is a part of.
    pub within: Option<&'static str>,
    /// By innermost function, what of it was spent there.
    own: Vec<(SymbolId, Cost)>,
}

impl CodeAdvice {
    /// What of it was spent in a function itself.
    pub(crate) fn own_of(&self, symbol: SymbolId) -> Cost {
        let found = self.own.iter().find(|&&(known, _)| known == symbol);
        found.map_or(Cost::default(), |&(_, cost)| cost)
    }

    /// Whether it is all page faults that it is about.
    pub(crate) fn is_of_faults(&self) -> bool {
        self.rule.name == first_touch::RULE.rule.name
    }
}

/// All rules.
const RULES: [&CodeRule; 21] = [
    &unoptimised::RULE,
    &getenv::RULE,
    &allocation::RULE,
    &copying::RULE,
    &string_scan::RULE,
    &hashing::RULE,
    &sorting::RULE,
    &regex_compile::RULE,
    &formatting::RULE,
    &logging::RULE,
    &exceptions::RULE,
    &locks::RULE,
    &reference_counts::RULE,
    &clock::RULE,
    &random::RULE,
    &dynamic_linking::RULE,
    &first_touch::RULE,
    &division::RULE,
    &atomics::RULE,
    &memory_wait::RULE,
    &stack_traffic::RULE,
];

/// The rules that hold for what `view` keeps of processor time, those that could gain more first.
pub(crate) fn advise_code(view: &View<'_>, code: &[ReadCode<'_>], sampling: &Sampling) -> Vec<CodeAdvice> {
    let code = Code::new(view, code);
    let mut found: Vec<(&'static CodeRule, Spent, Share)> = Vec::new();
    for rule in RULES {
        let spent = (rule.find)(&code);
        let share = sampling.share(spent.cost);
        if share.low >= rule.least_percent && spent.cost.samples >= LEAST_SAMPLES {
            found.push((rule, spent, share));
        }
    }
    found.sort_by(|one, other| (other.1.cost, one.0.rule.name).cmp(&(one.1.cost, other.0.rule.name)));
    let within = |at: usize| {
        let own = &found[at].1;
        let is_most = |outer: &Spent| code.common(own, outer).weight.saturating_mul(2) >= own.cost.weight;
        found[..at].iter().find(|(_, outer, _)| is_most(outer)).map(|(rule, ..)| rule.rule.name)
    };
    let within: Vec<Option<&str>> = (0..found.len()).map(within).collect();
    let advice = |((rule, spent, share), within): ((&'static CodeRule, Spent, Share), _)| {
        let Spent { cost, functions, callers, own, .. } = spent;
        CodeAdvice { rule: &rule.rule, extent: rule.extent, functions, callers, cost, share, within, own }
    };
    found.into_iter().zip(within).map(advice).collect()
}
