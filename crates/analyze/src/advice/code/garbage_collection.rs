//! Rule: CPU time goes into a runtime's garbage collection.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "runtime.gcBgMarkWorker",
        "runtime.gcAssistAlloc",
        "runtime.bgsweep",
        "runtime.gcDrain",
        "runtime.mallocgc",
        "runtime.newobject",
        "runtime.makeslice",
        "runtime.bgscavenge",
    ],
    begin: &[
        "v8::internal::Scavenger",
        "v8::internal::MarkCompact",
        "v8::internal::Heap::CollectGarbage",
        "v8::internal::Heap::Scavenge",
        "v8::internal::ConcurrentMarking",
        "G1ParTask",
        "G1",
        "ZMark",
        "PSScavenge",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "garbage-collection",
        claim: "collects garbage",
        pattern: "a runtime looks for objects that nobody uses any more, as the program makes so many",
        threshold: "at least 10% of processor time",
        remedy: "make fewer objects: keep buffers and use them again (sync.Pool), values in place of pointers, lengths given to make; a higher limit (GOGC, -Xmx, --max-semi-space-size)",
        bound: "collecting and allocating",
        source: "Go: A Guide to the Go Garbage Collector: its cost grows with allocation and with live pointers",
    },
    gain: GainModel::Parts { least: 0.6, most: 1.0, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
