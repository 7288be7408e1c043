//! Goroutines hand over values one by one.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "runtime.chansend",
        "runtime.chansend1",
        "runtime.chanrecv",
        "runtime.chanrecv1",
        "runtime.chanrecv2",
        "runtime.selectgo",
        "runtime.selectnbsend",
        "runtime.selectnbrecv",
        // What a goroutine that has to wait leads to runs on another stack.
        "runtime.park_m",
        "runtime.goready.func1",
        "runtime.ready",
    ],
    begin: &[],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "channel-hand-over",
        claim: "hands over values by channels one by one",
        pattern: "goroutines send and receive single values: each takes the channel's lock, and where one waits, the scheduler",
        threshold: "at least 25% of processor time in channel operations and the switches that they lead to",
        remedy: "send slices of values, give the channel a buffer, or call a function in place of a goroutine",
        bound: "sending, receiving and switching between goroutines",
        source: "Go's runtime, chan.go and proc.go: an operation locks the channel; one without a buffer parks a goroutine and readies another",
    },
    gain: GainModel::Everything { least: 0.85, callers: 0.5 },
    extent: Extent::Calls,
    least_percent: 25.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
