//! Rule: CPU time goes into page faults, because memory pages are allocated only on first access.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "first-touch",
        claim: "touches memory for the first time",
        pattern: "memory is touched that has no page yet: the kernel finds one, clears it and maps it",
        threshold: "at least 5% of processor time",
        remedy: "touch less memory; reuse what was freed instead of giving it back (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD); for large areas \
                 use huge pages (madvise MADV_HUGEPAGE); plumb kernel --advice tells which of these it is",
        bound: "all page faults outside of system calls",
        source: "measured: 1.4 to 1.6 us for each fault on 4 KiB; 64 MiB take 28 ms with small pages and 2.8 ms with huge ones",
    },
    gain: GainModel::Lines { least: 0.7, most: 1.1, callers: 1.0 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.page_faults(),
};
