//! Rules on instructions of some kind: their CPU time, in the functions whose code was read.

use std::cmp::Reverse;

use super::spent::{Code, LEAST_FUNCTION, Spent};
use super::{Activity, CodeRule, GainModel, Rule, part, text};
use crate::annotate::{Class, InstructionKind, MemoryPlace};
use crate::cost::Cost;
use crate::explain::ReadCode;
use crate::own_code::NAMED;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 2.0;
/// Minimum share of a function, in percent, for its slow instructions and for its accesses to the stack.
const LEAST_OF_CODE: f64 = 20.0;
const LEAST_STACK: f64 = 50.0;
/// Minimum share of its function, in percent, for a square root to count.
const LEAST_ROOTS: f64 = 0.5;

pub(in crate::advice) fn division() -> CodeRule {
    let rule = Rule {
        name: "division",
        claim: "divides",
        pattern: "a function's time is in dividing",
        threshold: threshold(),
        remedy: "divide by a constant, by a power of two (shift), or multiply by the reciprocal; move it out of the loop; use 32 bits \
                 where they do",
        bound: "these instructions: what waits for their results is not counted",
        source: "Agner Fog's instruction tables: a division takes 10 to 90 cycles, a multiplication 3 or 4",
    };
    CodeRule::of_instructions(
        rule,
        LEAST,
        GainModel::Parts { least: 0.5, most: 0.95, callers: 0.0 },
        |code| {
            let is_division = |kind| kind == InstructionKind::Division;
            code.instructions_of(|code| !takes_roots(code), LEAST_OF_CODE, |class, _| is_division(class.kind))
        },
    )
}

pub(in crate::advice) fn square_roots() -> CodeRule {
    let rule = Rule {
        name: "square-roots",
        claim: "takes square roots",
        pattern: "a function's time is in square roots, and in divisions by them if there are any",
        threshold: threshold(),
        remedy: "compare squares in place of roots; divide once by a root and multiply by that; float where double isn't needed; move it \
                 out of the loop",
        bound: "these instructions: what waits for their results is not counted",
        source: "Agner Fog's instruction tables: a square root takes 12 to 30 cycles, a multiplication 3 or 4",
    };
    CodeRule::of_instructions(
        rule,
        LEAST,
        GainModel::Parts { least: 0.3, most: 0.95, callers: 0.0 },
        |code| {
            let is_one = |kind| matches!(kind, InstructionKind::Division | InstructionKind::SquareRoot);
            code.instructions_of(takes_roots, LEAST_OF_CODE, |class, _| is_one(class.kind))
        },
    )
}

pub(in crate::advice) fn atomics() -> CodeRule {
    let rule = Rule {
        name: "atomics",
        claim: "waits for atomic instructions",
        pattern: "a function's time is in atomic instructions: each holds up what comes after it, and its cache line moves between \
                  processors",
        threshold: threshold(),
        remedy: "count in each thread and add up at the end, do several steps by one atomic instruction, put variables that different \
                 threads write into different cache lines",
        bound: "these instructions",
        source: "Intel's optimization manual, locked instructions: they are serializing for memory, and dearer when the line is shared",
    };
    CodeRule::of_instructions(rule, LEAST, GainModel::Parts { least: 0.5, most: 1.0, callers: 0.0 }, |code| {
        code.instructions(LEAST_OF_CODE, |class, _| class.kind == InstructionKind::Lock)
    })
}

pub(in crate::advice) fn stack_traffic() -> CodeRule {
    let rule = Rule {
        name: "stack-traffic",
        claim: "moves values between registers and the stack",
        pattern: "a function's time is in accesses to its frame: it has more variables than registers, or large ones",
        threshold: text(format!(
            "{} of a function that has {LEAST_FUNCTION}% of processor time without divisions and square roots, and at least {LEAST}% of all",
            part(LEAST_STACK / 100.0)
        )),
        remedy: "split off what is rarely needed (a fast path that is inlined, a slow one that is called), keep fewer variables alive at a \
                 time, pass small structures by value",
        bound: "these instructions",
        source: "Intel's optimization manual, store forwarding: a value that comes back from the frame takes 4 to 5 cycles",
    };
    CodeRule {
        activity: Activity::below(f64::INFINITY),
        ..CodeRule::of_instructions(rule, LEAST, GainModel::Unknown, |code| {
            let is_stack = |class: &Class, _| class.place == Some(MemoryPlace::Stack);
            code.instructions_of(|code| !waits(code), LEAST_STACK, is_stack)
        })
    }
}

/// Share of a function and of all time that its slow instructions take.
fn threshold() -> &'static str {
    text(format!(
        "{} of a function that has {LEAST_FUNCTION}% of processor time, and at least {LEAST}% of all",
        part(LEAST_OF_CODE / 100.0)
    ))
}

/// Returns whether a function has samples in square roots. A division waits for the root that is its divisor, so its samples also belong to
/// the root: in such a function, both are one cause.
fn takes_roots(code: &ReadCode<'_>) -> bool {
    let annotation = code.annotation;
    let rows = annotation.listing.instructions().iter().zip(&annotation.rows);
    let roots = rows.filter(|(one, _)| one.class.kind == InstructionKind::SquareRoot);
    annotation.share(roots.map(|(_, row)| row.adjusted).sum()) >= LEAST_ROOTS
}

/// Returns whether a function has slow instructions. Samples land on the instructions that wait for their results,
/// which may also read the frame.
fn waits(code: &ReadCode<'_>) -> bool {
    let is_slow = |kind| matches!(kind, InstructionKind::Division | InstructionKind::SquareRoot);
    code.annotation.listing.instructions().iter().any(|one| is_slow(one.class.kind))
}

impl Code<'_, '_> {
    /// Sums the time of instructions for which `is_one` holds, by their class and their share of the function in
    /// percent, in functions where they have at least `least` percent.
    pub(super) fn instructions(&self, least: f64, is_one: impl Fn(&Class, f64) -> bool) -> Spent {
        self.instructions_of(|_| true, least, is_one)
    }

    /// Sums the time of such instructions, in functions for which `is_whose` holds.
    pub(super) fn instructions_of(
        &self,
        is_whose: impl Fn(&ReadCode<'_>) -> bool,
        least: f64,
        is_one: impl Fn(&Class, f64) -> bool,
    ) -> Spent {
        let mut spent = Spent::default();
        for code in self.read().iter().filter(|code| self.is_meant(code) && is_whose(code)) {
            let annotation = code.annotation;
            let rows = annotation.listing.instructions().iter().zip(&annotation.rows);
            let those = rows.filter(|(one, row)| is_one(&one.class, annotation.share(row.adjusted)));
            let weight: f64 = those.map(|(_, row)| row.adjusted).sum();
            if annotation.share(weight) < least {
                continue;
            }
            let samples = annotation.own.samples as f64 * annotation.share(weight) / 100.0;
            let cost = Cost { weight: weight as u64, samples: samples as u64 };
            spent.cost += cost;
            self.add_function(&mut spent, code, cost);
        }
        spent.functions.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        spent.functions.truncate(NAMED);
        spent
    }
}
