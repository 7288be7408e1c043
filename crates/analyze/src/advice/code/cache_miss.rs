//! Rule: a loop waits for data that is not in the caches.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "cache-miss",
        claim: "waits for data that is not in the caches",
        pattern: "a loop waits for its data: the addresses that its loads read are in no order, and spread over more memory than the caches \
                  near the processor hold",
        threshold: "sampled addresses of a load in a function with 5% of processor time, spread over more than the second level of the cache; \
                    what they wait for is at least 30% of a round",
        remedy: "make the data smaller or denser (arrays instead of links, 32-bit indices, parts that are used together side by side), go \
                 through it in order, prefetch what is needed next, work on several at a time",
        bound: "the loop, but for what its instructions take with all data at hand",
        source: "Drepper, What every programmer should know about memory (2007): 3 cycles to the first cache, 240 to main memory",
    },
    gain: GainModel::Loops { least: 0.3, most: 1.2 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::CacheMiss { .. })),
};
