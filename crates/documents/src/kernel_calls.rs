//! Calls that were counted and timed in addition to samples of kernel time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plumb_syscalls::{
    CallOverhead, CallsApart, CountedCall, CountedCalls, Longest, TaskEvents, Times, errno_name, gives_bytes,
};
use serde_json::Value;

use crate::column::{Column, Unit};

document! {
    /// All counts. Unmeasured values are null.
    pub struct CountedDocument<'c> as "CountedCalls" of (counted: &'c CountedCalls) {
        calls: Vec<CountedRow<'c>> = counted.calls.iter().map(CountedRow::new).collect(),
        events: EventCounts = EventCounts::new(counted.events),
        tax: CountingCost = CountingCost::new(counted.overhead, counted.is_timed),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        groups: Vec<CountedGroup<'c>> = counted.groups.iter().map(CountedGroup::new).collect(),
    }
}

document! {
    struct EventCounts as "EventCounts" of (events: TaskEvents) {
        minor_faults: u64 = events.minor_faults,
        major_faults: u64 = events.major_faults,
        voluntary_switches: u64 = events.voluntary_switches,
        involuntary_switches: u64 = events.involuntary_switches,
        ended_threads: u64 = events.ended,
        lost_calls: u64 = events.lost,
        missed_calls: u64 = events.skipped,
    }
}

document! {
    struct CountingCost as "CountingCost" of (cost: CallOverhead, is_timed: bool) {
        null_call_ns: f64 = cost.bare_ns,
        each_call_of_others_ns: f64 = cost.others_ns(),
        each_counted_call_ns: f64 = cost.own_ns(),
        floor_ns: Option<u64> = is_timed.then(|| cost.floor_ns()),
    }
}

document! {
    struct CountedGroup<'c> as "CountedGroup" of (group: &'c CallsApart) {
        id: u64 = group.id,
        name: &'c str = &group.name,
        calls: Vec<CountedRow<'c>> = group.calls.iter().map(CountedRow::new).collect(),
    }
}

document! {
    /// Calls of one name.
    pub struct CountedRow<'c> as "CountedCall" of (call: &'c CountedCall) {
        name: &'c str = &call.name,
        calls: u64 = call.account.calls,
        errors: u64 = call.account.failed,
        errors_by_name: BTreeMap<Cow<'static, str>, u64> =
            call.account.errors.iter().map(|(&number, &count)| (error_name(number), count)).collect(),
        bytes: Option<u64> = gives_bytes(&call.name).then_some(call.account.given),
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        times: Option<CallTimes<'c>> = call.account.times.as_ref().map(CallTimes::new),
    }
}

document! {
    struct CallTimes<'c> as "CallTimes" of (times: &'c Times) {
        timed_calls: u64 = times.calls,
        wall_ns: u64 = times.wall_ns,
        on_cpu_ns: u64 = times.on_cpu_ns(),
        blocked_ns: u64 = times.blocked_ns,
        preempted_ns: u64 = times.preempted_ns,
        queued_ns: u64 = times.queued_ns,
        mean_ns: f64 = times.mean_ns(),
        p50_ns: f64 = times.percentile_ns(0.5),
        p99_ns: f64 = times.percentile_ns(0.99),
        max_ns: Option<u64> = times.longest.as_ref().map(|longest| longest.ns),
        longest: Option<LongestCall<'c>> = times.longest.as_ref().map(LongestCall::new),
        histogram: Vec<LatencyBucket> = (times.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0))
            .map(|(bucket, &calls)| LatencyBucket::new(bucket, calls))
            .collect(),
    }
}

document! {
    struct LongestCall<'c> as "LongestCall" of (one: &'c Longest) {
        ns: u64 = one.ns,
        result: i64 = one.result,
        args: [u64; 6] = one.args,
        path: &'c str = &one.text,
        pid: u32 = one.pid,
        tid: u32 = one.tid,
        end_ns: u64 = one.end_ns,
    }
}

document! {
    struct LatencyBucket as "LatencyBucket" of (bucket: usize, calls: u64) {
        from_ns: u64 = 1 << bucket,
        to_ns: u64 = 2 << bucket,
        calls: u64 = calls,
    }
}

impl CountedRow<'_> {
    fn time<T: Into<Value>>(&self, of: impl FnOnce(&CallTimes<'_>) -> T) -> Value {
        self.times.as_ref().map_or(Value::Null, |times| of(times).into())
    }
}

/// Returns the columns of counted and timed calls.
pub fn columns<'c>() -> [Column<CountedRow<'c>>; 12] {
    use Unit::{Plain, ShortTime, Weight};
    [
        Column::headed("calls", "Calls", Plain, |row| row.calls.into()),
        Column::headed("errors", "Errors", Plain, |row| row.errors.into()),
        Column::headed("wall_ns", "Wall", Weight, |row| row.time(|times| times.wall_ns)),
        Column::headed("on_cpu_ns", "On CPU", Weight, |row| row.time(|times| times.on_cpu_ns)),
        Column::headed("blocked_ns", "Waiting", Weight, |row| row.time(|times| times.blocked_ns)),
        Column::headed("preempted_ns", "Preempted", Weight, |row| row.time(|times| times.preempted_ns)),
        Column::headed("queued_ns", "Run queue", Weight, |row| row.time(|times| times.queued_ns)),
        Column::headed("mean_ns", "Mean", ShortTime, |row| row.time(|times| times.mean_ns)),
        Column::headed("p50_ns", "p50", ShortTime, |row| row.time(|times| times.p50_ns)),
        Column::headed("p99_ns", "p99", ShortTime, |row| row.time(|times| times.p99_ns)),
        Column::headed("max_ns", "Max", Weight, |row| row.time(|times| times.max_ns)),
        Column::headed("name", "Call", Plain, |row| row.name.into()),
    ]
}

/// Returns the name of an error, or its number if unknown.
pub fn error_name(number: u32) -> Cow<'static, str> {
    errno_name(number).map_or_else(|| format!("errno {number}").into(), Cow::Borrowed)
}
