//! Rule: threads are started for little work each.

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Names, Rule, text};
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

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 15.0;
/// Name of the rule.
pub(in crate::advice) const NAME: &str = "thread-start";

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: NAME,
        claim: "starts a new thread for little work",
        pattern: "threads are started and end again all the time",
        threshold: text(format!(
            "at least {LEAST}% of processor time in starting threads, their ends and waiting for these; {LEAST_STARTS}% in starting"
        )),
        remedy: "keep threads and hand them the work (a pool, a queue), or give each more to do",
        bound: "starting, ending and joining threads",
        source: "measured: 36 us of processor time for each thread that does next to nothing",
    };
    CodeRule { gain: GainModel::Everything { least: 0.85, callers: 1.0 }, ..CodeRule::new(rule, LEAST, find) }
}

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
