//! Rule: a function's time is in moving variables between registers and the stack frame.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, ReadCode};
use crate::annotate::{InstructionKind, MemoryPlace};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "stack-traffic",
        claim: "moves values between registers and the stack",
        pattern: "a function's time is in accesses to its frame: it has more variables than registers, or large ones",
        threshold: "half of a function that has 5% of processor time without divisions and square roots, and at least 2% of all",
        remedy: "split off what is rarely needed (a fast path that is inlined, a slow one that is called), keep fewer variables alive at a \
                 time, pass small structures by value",
        bound: "these instructions",
        source: "Intel's optimization manual, store forwarding: a value that comes back from the frame takes 4 to 5 cycles",
    },
    gain: GainModel::Unknown,
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| {
        code.instructions_of(|code| !waits(code), 50.0, |class, _| class.place == Some(MemoryPlace::Stack))
    },
};

/// Returns whether a function has slow instructions. Samples land on the instructions that wait for their results,
/// which may also read the frame.
fn waits(code: &ReadCode<'_>) -> bool {
    let is_slow = |kind| matches!(kind, InstructionKind::Division | InstructionKind::SquareRoot);
    code.annotation.listing.instructions().iter().any(|one| is_slow(one.class.kind))
}
