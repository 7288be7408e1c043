//! Rule: CPU time goes into reading the clock.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "clock_gettime",
        "__clock_gettime",
        "__clock_gettime_2",
        "__vdso_clock_gettime",
        "gettimeofday",
        "__gettimeofday",
        "__vdso_gettimeofday",
        "__kernel_clock_gettime",
        "std::time::Instant::now",
        "std::time::SystemTime::now",
        "std::chrono::_V2::steady_clock::now",
        "std::chrono::_V2::system_clock::now",
        "do_hres",
        "time.Now",
        "runtime.nanotime",
    ],
    begin: &["std::sys::pal::unix::time::Timespec::now"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "clock-reads",
        claim: "reads the clock",
        pattern: "the clock is read very often",
        threshold: "at least 2% of processor time",
        remedy: "read it once for a batch, or use a coarse clock (CLOCK_MONOTONIC_COARSE); calls enter the kernel if the clock source is slow, or for a clock of CPU time",
        bound: "all reading of clocks",
        source: "measured: clock_gettime takes 22 ns through the vdso, 166 ns as a system call",
    },
    gain: GainModel::Parts { least: 0.8, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 2.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
