//! Threads wait for the interpreter lock.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names =
    Names { whole: &["take_gil", "drop_gil", "_Py_TakeGIL", "_PyEval_HandlePending"], begin: &[] };

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "gil",
        claim: "hands the interpreter lock from thread to thread",
        pattern: "threads of Python want the interpreter lock at the same time: one runs, and all hand it on",
        threshold: "at least 5% of processor time in handing it on",
        remedy: "processes instead of threads (multiprocessing, concurrent.futures.ProcessPoolExecutor), or code that releases the lock",
        bound: "handing on of the lock; the threads don't run at the same time either way",
        source: "CPython: Python/ceval_gil.c",
    },
    gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.0 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
