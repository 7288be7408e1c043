//! Rule: the program was compiled without optimization.

use super::spent::{LEAST_FUNCTIONS, MOST_OF_FILE};
use super::{CodeRule, Extent, GainModel, Rule, part, text, word};

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "unoptimised-build",
        claim: "was compiled without optimization",
        pattern: "most of a file's hot code keeps its variables in memory while registers are free: it looks as if compiled by -O0",
        threshold: text(format!(
            "{} of the hot code that was read, in {} functions or more, in a file with {LEAST}% of processor time",
            part(MOST_OF_FILE),
            word(LEAST_FUNCTIONS)
        )),
        remedy: "build with optimisation before anything else (-O2, cargo build --release, CMAKE_BUILD_TYPE=RelWithDebInfo): what is slow then \
                 may be something else",
        bound: "all code of the file",
        source: "GCC's manual, -O0: statements are independent, so that variables are written back after each",
    };
    CodeRule {
        gain: GainModel::Parts { least: 0.4, most: 0.95, callers: 0.0 },
        extent: Extent::Files,
        ..CodeRule::new(rule, LEAST, |code| code.unoptimised_files())
    }
}
