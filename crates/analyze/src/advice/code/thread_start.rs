//! Rule: threads are started for little work each.

use super::super::Rule;
use super::spent::{Code, Spent};
use super::{CodeRule, Extent, GainModel, Names};
use crate::frame::Kind;

/// Functions that start threads.
const STARTS: Names = Names {
    whole: &[
        "pthread_create",
        "__pthread_create_2_1",
        "thrd_create",
        "std::thread::_M_start_thread",
        "std::sys::thread::unix::Thread::new",
        "std::sys::pal::unix::thread::Thread::new",
        "std::sys::unix::thread::Thread::new",
    ],
    begin: &["__pthread_create_", "std::thread::Builder::spawn", "std::thread::spawn"],
};
/// Functions that wait for threads to end.
const JOINS: Names = Names {
    whole: &["pthread_join", "__pthread_clockjoin_ex", "thrd_join", "std::thread::join"],
    begin: &["__pthread_join", "std::thread::JoinHandle"],
};
/// System call by which a thread ends; a process ends by another one (man 2 exit_group).
const ENDS: &[&str] = &["__x64_sys_exit", "__do_sys_exit", "__arm64_sys_exit"];
/// Minimum share of starting threads, in percent.
const LEAST_STARTS: f64 = 5.0;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "thread-start",
        claim: "starts a new thread for little work",
        pattern: "threads are started and end again all the time",
        threshold: "at least 15% of processor time in starting threads, their ends and waiting for these; 5% in starting",
        remedy: "keep threads and hand them the work (a pool, a queue), or give each more to do",
        bound: "starting, ending and joining threads",
        source: "measured: 36 us of processor time for each thread that does next to nothing",
    },
    gain: GainModel::Everything { least: 0.85, callers: 1.0 },
    extent: Extent::Calls,
    least_percent: 15.0,
    find,
};

fn find(code: &Code<'_, '_>) -> Spent {
    let starts = code.calls_of(&STARTS);
    if starts.cost.percent_of(code.view().whole()) < LEAST_STARTS {
        return Spent::default();
    }
    let (is_start, is_join) = (code.named(&STARTS), code.named(&JOINS));
    code.below(|node| {
        let frame = code.view().frame(code.tree().frame(node));
        let symbol = frame.symbol.index();
        is_start[symbol] || is_join[symbol] || frame.kind == Kind::Kernel && ENDS.contains(&&*frame.name)
    })
}
