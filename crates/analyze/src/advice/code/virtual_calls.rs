//! Rule: small functions are called through pointers.

use std::collections::{HashMap, HashSet};

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Rule, percent, text, word};
use crate::annotate::{Annotation, InstructionKind};
use crate::cost::Cost;
use crate::explain::ReadCode;
use crate::frame::SymbolId;

/// Maximum number of instructions of a function that does little.
const MOST_INSTRUCTIONS: usize = 24;
/// Minimum number of targets.
const LEAST_TARGETS: usize = 2;
/// Minimum share of the calls' inclusive cost, for a target to count.
const LEAST_OF_TARGET: f64 = 0.1;
/// Minimum share of all small targets together.
const LEAST_OF_CALLS: f64 = 0.6;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "virtual-calls",
        claim: "calls small functions through pointers (virtual calls) in a loop",
        pattern: "a loop calls functions through pointers that differ from element to element, and the functions do little",
        threshold: text(format!(
            "an indirect call in the code, {} targets or more with {} of what is done for it, which have {} together and {MOST_INSTRUCTIONS} \
             instructions each at most",
            word(LEAST_TARGETS as u64),
            percent(LEAST_OF_TARGET),
            percent(LEAST_OF_CALLS)
        )),
        remedy: "keep elements of one type together and call once for all of them, use a template, a variant or a switch that the compiler \
                 inlines; sort by type so that the calls are predicted",
        bound: "the function with the calls and its targets; what these compute remains",
        source: "Driesen and Hoelzle, The Direct Cost of Virtual Function Calls in C++ (OOPSLA 1996); a wrong prediction takes 20 cycles and more",
    };
    CodeRule {
        gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.0 },
        ..CodeRule::new(rule, LEAST, find)
    }
}

fn find(code: &Code<'_, '_>) -> Spent {
    let small: HashSet<SymbolId> = symbols_of(code, is_small);
    let callers: HashSet<SymbolId> = symbols_of(code, calls_by_pointer)
        .into_iter()
        .filter(|&caller| has_small_targets(code, caller, &small))
        .collect();
    code.below_itself(|node| code.is_own(node) && callers.contains(&code.symbol(node)))
}

/// Returns the functions for whose code `holds` is true.
fn symbols_of(code: &Code<'_, '_>, holds: impl Fn(&Annotation) -> bool) -> HashSet<SymbolId> {
    let of = |read: &ReadCode<'_>| code.symbol_of(read).filter(|_| holds(read.annotation));
    code.read().iter().filter_map(of).collect()
}

/// Returns whether a function has few instructions, no loop and no calls.
fn is_small(annotation: &Annotation) -> bool {
    let instructions = annotation.listing.instructions();
    let is_back = |index: usize| annotation.listing.jump(index).is_some_and(|to| to <= index);
    let is_call =
        |kind: InstructionKind| matches!(kind, InstructionKind::Call | InstructionKind::IndirectCall);
    instructions.len() <= MOST_INSTRUCTIONS
        && !instructions.iter().any(|one| is_call(one.class.kind))
        && !(0..instructions.len()).any(is_back)
}

fn calls_by_pointer(annotation: &Annotation) -> bool {
    annotation.listing.instructions().iter().any(|one| one.class.kind == InstructionKind::IndirectCall)
}

/// Returns whether most of a function's callees are small, and there are several.
fn has_small_targets(code: &Code<'_, '_>, caller: SymbolId, small: &HashSet<SymbolId>) -> bool {
    let tree = code.tree();
    let mut targets: HashMap<SymbolId, Cost> = HashMap::new();
    for node in tree
        .nodes()
        .filter(|&node| tree.caller(node).is_some_and(|one| code.symbol(code.real(one)) == caller))
    {
        if !code.is_inlined(node) {
            *targets.entry(code.symbol(node)).or_default() += tree.total(node);
        }
    }
    let whole: u64 = targets.values().map(|cost| cost.weight).sum();
    let part = |cost: &Cost| if whole > 0 { cost.weight as f64 / whole as f64 } else { 0.0 };
    let little = targets.iter().filter(|(symbol, _)| small.contains(symbol));
    let large = little.clone().filter(|(_, cost)| part(cost) >= LEAST_OF_TARGET).count();
    large >= LEAST_TARGETS && little.map(|(_, cost)| part(cost)).sum::<f64>() >= LEAST_OF_CALLS
}
