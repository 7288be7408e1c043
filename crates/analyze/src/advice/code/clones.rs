//! Values are cloned.

use super::super::Rule;
use super::spent::{Code, Spent};
use super::{CodeRule, Extent, GainModel};
use crate::cost::Cost;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "clone",
        claim: "clones values",
        pattern: "owned values are copied with all that they hold, where a reference might do",
        threshold: "at least 10% of processor time",
        remedy: "borrow (&str, &[T]), share (Rc, Arc), move, or take Cow; clone what is kept, not what is only looked at",
        bound: "cloning with the allocation and copying below it",
        source: "the Rust book, chapter 4: clone copies the data on the heap as well",
    },
    gain: GainModel::Lines { least: 0.8, most: 1.0, callers: 0.8 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find,
};

fn find(code: &Code<'_, '_>) -> Spent {
    let cloned = code.calls_named(|name| {
        name.ends_with("Clone>::clone") || name.starts_with("<alloc::") && name.ends_with("::to_vec")
    });
    // What is cloned is dropped, somewhere else: but no more of that than there is of cloning.
    let dropped = code.calls_named(|name| name.starts_with("core::ptr::drop_in_place"));
    let both = code.common(&dropped, &cloned);
    let apart = dropped.cost.weight.saturating_sub(both.weight).min(cloned.cost.weight);
    let samples = dropped.cost.samples.saturating_sub(both.samples).min(cloned.cost.samples);
    cloned.with_elsewhere(Cost { weight: apart, samples })
}
