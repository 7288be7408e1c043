//! Rule: CPU time goes into the cyclic garbage collector.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "gc_collect_main",
        "deduce_unreachable",
        "collect_with_callback",
        "gc_collect_generations",
        "collect_generations",
    ],
    begin: &[],
};

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "garbage-collection",
        claim: "has the garbage collector run",
        pattern: "the garbage collector goes over all objects again and again",
        threshold: "at least 5% of processor time",
        remedy: "gc.freeze() after start, gc.set_threshold higher, fewer cycles",
        bound: "the collector",
        source: "CPython's documentation of the module gc",
    },
    gain: GainModel::Parts { least: 0.7, most: 1.0, callers: 0.0 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
