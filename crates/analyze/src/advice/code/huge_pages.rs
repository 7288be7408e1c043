//! Rule: memory accesses are spread over more pages than the TLB covers.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "huge-pages",
        claim: "misses the TLB: it works on a few lines of very many pages",
        pattern: "loads are spread over more pages than the TLB has room for, of each of which few lines are used",
        threshold: "sampled addresses of a load in a function with 5% of processor time, on more than 16 MiB of pages, their lines no more than \
                    the last level of the cache holds",
        remedy: "huge pages (madvise MADV_HUGEPAGE, transparent_hugepage=always), or what is used together side by side",
        bound: "the loop, but for what its instructions take",
        source: "Linux, Documentation/admin-guide/mm/transhuge.rst: one entry of the TLB maps 2 MiB",
    },
    gain: GainModel::Loops { least: 0.5, most: 1.0 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.loops(|cause| matches!(cause, LoopCause::TlbMiss { .. })),
};
