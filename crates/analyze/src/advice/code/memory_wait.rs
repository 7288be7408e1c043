//! A function waits for memory at one place.

use super::super::Rule;
use super::{CodeRule, Extent};
use crate::annotate::{InstructionKind, MemoryPlace};

/// One load holds this share of its function, in percent.
const LEAST_OF_FUNCTION: f64 = 30.0;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "memory-wait",
        pattern: "one load holds much of a function's time: most likely its data is not in the caches, else each load waits for the one \
                  before",
        threshold: "a load with 30% of a function that has 5% of processor time, and at least 2% of all",
        remedy: "make the data smaller or denser (arrays instead of links, 32-bit indices, parts that are used together side by side), go \
                 through it in order, prefetch what is needed next, work on several at a time",
        bound: "these loads",
        source: "Drepper, What every programmer should know about memory (2007): 3 cycles to the first cache, 240 to main memory",
    },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| {
        code.instructions(|class, of_function| {
            class.kind == InstructionKind::Plain
                && class.loads
                && class.place != Some(MemoryPlace::Stack)
                && of_function >= LEAST_OF_FUNCTION
        })
    },
};
