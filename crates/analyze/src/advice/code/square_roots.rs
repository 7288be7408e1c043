//! Rule: a function's time is in square roots, alone or with divisions by them.
//!
//! A division waits for the root that is its divisor, so its samples also belong to the root: in such a function,
//! both are one cause.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, ReadCode};
use crate::annotate::InstructionKind;

/// Minimum share of its function, in percent, for a root to count.
const LEAST: f64 = 0.5;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "square-roots",
        claim: "takes square roots",
        pattern: "a function's time is in square roots, and in divisions by them if there are any",
        threshold: "a fifth of a function that has 5% of processor time, and at least 2% of all",
        remedy: "compare squares in place of roots; divide once by a root and multiply by that; float where double isn't needed; move it \
                 out of the loop",
        bound: "these instructions: what waits for their results is not counted",
        source: "Agner Fog's instruction tables: a square root takes 12 to 30 cycles, a multiplication 3 or 4",
    },
    gain: GainModel::Parts { least: 0.3, most: 0.95, callers: 0.0 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| {
        let is_one = |kind| matches!(kind, InstructionKind::Division | InstructionKind::SquareRoot);
        code.instructions_of(takes_roots, 20.0, |class, _| is_one(class.kind))
    },
};

/// Returns whether a function has samples in square roots.
pub(super) fn takes_roots(code: &ReadCode<'_>) -> bool {
    let annotation = code.annotation;
    let rows = annotation.listing.instructions().iter().zip(&annotation.rows);
    let roots = rows.filter(|(one, _)| one.class.kind == InstructionKind::SquareRoot);
    annotation.share(roots.map(|(_, row)| row.adjusted).sum()) >= LEAST
}
