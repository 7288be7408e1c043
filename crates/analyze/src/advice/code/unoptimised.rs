//! Rule: the program was compiled without optimization.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "unoptimised-build",
        claim: "was compiled without optimization",
        pattern: "most of a file's hot code keeps its variables in memory while registers are free: it looks as if compiled by -O0",
        threshold: "half of the hot code that was read, in two functions or more, in a file with 10% of processor time",
        remedy: "build with optimisation before anything else (-O2, cargo build --release, CMAKE_BUILD_TYPE=RelWithDebInfo): what is slow then \
                 may be something else",
        bound: "all code of the file",
        source: "GCC's manual, -O0: statements are independent, so that variables are written back after each",
    },
    gain: GainModel::Parts { least: 0.4, most: 0.95, callers: 0.0 },
    extent: Extent::Files,
    least_percent: 10.0,
    find: |code| code.unoptimised_files(),
};
