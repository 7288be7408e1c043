//! Rule: CPU time goes into page faults, because memory pages are allocated only on first access.

use super::{Activity, CodeRule, GainModel, Rule, at_least};

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 5.0;
/// Name of the rule.
pub(in crate::advice) const NAME: &str = "first-touch";

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: NAME,
        claim: "touches memory for the first time",
        pattern: "memory is touched that has no page yet: the kernel finds one, clears it and maps it",
        threshold: at_least(LEAST),
        remedy: "touch less memory; reuse what was freed instead of giving it back (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD); for large areas \
                 use huge pages (madvise MADV_HUGEPAGE); plumb kernel --advice tells which of these it is",
        bound: "all page faults outside of system calls",
        source: "measured: 1.4 to 1.6 us for each fault on 4 KiB; 64 MiB take 28 ms with small pages and 2.8 ms with huge ones",
    };
    CodeRule {
        gain: GainModel::Lines { least: 0.7, most: 1.1, callers: 1.0 },
        activity: Activity::below(30.0),
        ..CodeRule::new(rule, LEAST, |code| code.page_faults())
    }
}
