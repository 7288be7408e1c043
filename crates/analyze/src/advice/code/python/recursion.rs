//! Rule: a function of a Python program calls itself, so no single line calls it for each element.

use crate::advice::code::scripts::{LEAST_BY_ITSELF, MOST_OF_LITTLE};
use crate::advice::code::{Activity, CodeRule, Rule, part, percent, text};

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 20.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "python-recursion",
        claim: "calls itself again and again",
        pattern: "a function of the program that does little else calls itself",
        threshold: text(format!(
            "at least {LEAST}% of processor time in functions in which the interpreter's loop has {}, of which {} in calls by themselves",
            percent(MOST_OF_LITTLE),
            part(LEAST_BY_ITSELF)
        )),
        remedy: "keep the results of calls with the same arguments (functools.lru_cache), or write it as a loop",
        bound: "the function with all that it calls",
        source: "measured on CPython 3.11: paths through a lattice take 0.45 s by recursion, 0.06 s with lru_cache",
    };
    CodeRule {
        activity: Activity::below(f64::INFINITY),
        ..CodeRule::new(rule, LEAST, |code| code.recursive_functions())
    }
}
