//! Rule: a function's time is in divisions.
//!
//! Functions that also compute square roots are covered elsewhere (`square_roots`).

use super::super::Rule;
use super::square_roots::takes_roots;
use super::{CodeRule, Extent, GainModel};
use crate::annotate::InstructionKind;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "division",
        claim: "divides",
        pattern: "a function's time is in dividing",
        threshold: "a fifth of a function that has 5% of processor time, and at least 2% of all",
        remedy: "divide by a constant, by a power of two (shift), or multiply by the reciprocal; move it out of the loop; use 32 bits \
                 where they do",
        bound: "these instructions: what waits for their results is not counted",
        source: "Agner Fog's instruction tables: a division takes 10 to 90 cycles, a multiplication 3 or 4",
    },
    gain: GainModel::Parts { least: 0.5, most: 0.95, callers: 0.0 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| {
        let is_division = |kind| kind == InstructionKind::Division;
        code.instructions_of(|code| !takes_roots(code), 20.0, |class, _| is_division(class.kind))
    },
};
