//! Rule: small functions of a Python program are called for each element.
//!
//! Each call sets up and clears a frame, and samples in functions of the interpreter show how much time that takes.
//! Frame set-up is only a few percent of the cost of calls; the rest is in the evaluation loop. A program with few
//! calls spends none of it, however much Python it runs.

use crate::advice::code::scripts::MOST_OF_LITTLE;
use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{Activity, CodeRule, GainModel, Names, Rule, percent, text};

/// Functions that set up a frame, or clear one after a return. Unwinding by an exception uses others.
const MADE: Names = Names {
    whole: &[
        "_PyFrame_Push",
        "_PyThreadState_PushFrame",
        "_PyEvalFramePushAndInit",
        "_PyEvalFrameClearAndPop",
        "_PyEval_FrameClearAndPop",
        "clear_thread_frame",
        "initialize_locals",
        "_PyFrame_New_NoTrack",
    ],
    begin: &[],
};

/// Functions that set up and clear frames, in CPython 3.8 and later.
const FRAMES: Names = Names {
    whole: &[
        "_PyFrame_Push",
        "_PyFrame_Clear",
        "_PyFrame_ClearExceptCode",
        "_PyThreadState_PushFrame",
        "_PyThreadState_PopFrame",
        "_PyEvalFramePushAndInit",
        "_PyEvalFrameClearAndPop",
        "_PyEval_FrameClearAndPop",
        "_PyEval_MakeFrameVector",
        "initialize_locals",
        "clear_thread_frame",
        "_PyFrame_New_NoTrack",
    ],
    begin: &[],
};

/// Minimum share of setting up frames, in percent.
const LEAST_OF_FRAMES: f64 = 1.0;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "python-calls",
        claim: "calls a small Python function for each element",
        pattern: "small functions of the program are called so often that making their frames shows",
        threshold: text(format!(
            "at least {LEAST}% of processor time in functions in which the interpreter's loop has {}, and {LEAST_OF_FRAMES}% in making frames",
            percent(MOST_OF_LITTLE)
        )),
        remedy: "do it for all elements in one call: a comprehension, sum, map, numpy; write the function's body where it is called",
        bound: "the functions that are called, and the lines that call them",
        source: "measured on CPython 3.11: 38 ns for a round of a loop that calls an empty function, 14 ns without the call",
    };
    CodeRule {
        gain: GainModel::Lines { least: 0.7, most: 1.0, callers: 0.2 },
        activity: Activity::below(40.0),
        ..CodeRule::new(rule, LEAST, find)
    }
}

fn find(code: &Code<'_, '_>) -> Spent {
    let frames = code.calls_of(&MADE);
    match frames.cost.percent_of(code.view().whole()) >= LEAST_OF_FRAMES {
        true => code.small_functions(&FRAMES),
        false => Spent::default(),
    }
}
