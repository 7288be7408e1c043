//! Rule: CPU time goes into random numbers.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "rand",
        "srand",
        "random",
        "__random",
        "__random_r",
        "random_r",
        "rand_r",
        "drand48",
        "erand48",
        "lrand48",
        "nrand48",
        "__drand48_iterate",
        "arc4random",
        "getrandom",
    ],
    begin: &[
        "std::random_device::",
        "std::mersenne_twister_engine",
        "std::uniform_int_distribution",
        "rand_core::",
        "rand_chacha::",
        "rand::",
        "<rand::",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "random-numbers",
        claim: "draws random numbers",
        pattern: "random numbers are drawn very often",
        threshold: "at least 5% of processor time",
        remedy: "if they belong to a benchmark and not to what it measures, leave them out of the report (--ignore); else use a generator of each thread's \
                 own (xoshiro, PCG): rand() takes a lock each time",
        bound: "drawing random numbers",
        source: "random(3): the state is shared by all threads; glibc's rand and random take a lock",
    },
    gain: GainModel::Parts { least: 0.3, most: 0.9, callers: 0.1 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
