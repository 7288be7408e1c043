//! Rule: goroutines pass values one by one.
//!
//! A goroutine that has to wait enters the scheduler, which runs on another stack, so the reason for the wait is not
//! visible there. Such switches are attributed to channels only if the program's own code uses channels, and more
//! than other operations on which goroutines wait.

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Names, Rule, text};

/// Send and receive operations.
const OPERATIONS: Names = Names {
    whole: &[
        "runtime.chansend",
        "runtime.chansend1",
        "runtime.chanrecv",
        "runtime.chanrecv1",
        "runtime.chanrecv2",
        "runtime.selectgo",
        "runtime.selectnbsend",
        "runtime.selectnbrecv",
    ],
    begin: &[],
};
/// Scheduler functions that every waiting goroutine enters.
const SWITCHES: Names =
    Names { whole: &["runtime.park_m", "runtime.goready.func1", "runtime.ready"], begin: &[] };
/// Other operations on which a goroutine waits: locks, sleep, sockets.
const OTHER_WAITS: Names = Names {
    whole: &[
        "runtime.semacquire",
        "runtime.semacquire1",
        "runtime.semrelease1",
        "runtime.notifyListWait",
        "runtime.timeSleep",
        "time.Sleep",
        "runtime.netpollblock",
        "runtime.poll_runtime_pollWait",
        "internal/poll.runtime_pollWait",
    ],
    begin: &["sync.", "internal/sync.", "internal/poll.(*FD)", "internal/poll.(*pollDesc)"],
};
/// Minimum share of the program's own channel operations, in percent, for switches to count.
const LEAST_OPERATIONS: f64 = 4.0;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 25.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "channel-hand-over",
        claim: "hands over values by channels one by one",
        pattern: "goroutines send and receive single values: each takes the channel's lock, and where one waits, the scheduler",
        threshold: text(format!(
            "at least {LEAST}% of processor time in the program's channel operations, and in the switches between goroutines if little else \
             leads to these"
        )),
        remedy: "send slices of values, give the channel a buffer, or call a function in place of a goroutine",
        bound: "sending, receiving and switching between goroutines",
        source: "Go's runtime, chan.go and proc.go: an operation locks the channel; one without a buffer parks a goroutine and readies another",
    };
    CodeRule { gain: GainModel::Everything { least: 0.85, callers: 0.5 }, ..CodeRule::new(rule, LEAST, find) }
}

fn find(code: &Code<'_, '_>) -> Spent {
    let (is_operation, is_switch) = (code.named(&OPERATIONS), code.named(&SWITCHES));
    let is_own = |node: u32| code.tree().caller(node).is_some_and(|caller| code.is_own(caller));
    let is_own_operation = |node: u32| is_operation[code.symbol(node).index()] && is_own(node);
    let own = code.below(is_own_operation);
    let others = code.calls_of(&OTHER_WAITS).cost;
    let is_most = own.cost.percent_of(code.view().whole()) >= LEAST_OPERATIONS
        && others.weight.saturating_mul(2) <= own.cost.weight;
    if !is_most {
        return own;
    }
    let all = code.below(|node| is_own_operation(node) || is_switch[code.symbol(node).index()]);
    // The program's own code gives the location.
    all.with_places_of(own)
}
