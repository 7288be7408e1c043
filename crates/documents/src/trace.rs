//! System calls as they were traced: single calls, sums by name, latencies over time, and bursts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plumb_analyze::{Kind, ViewFrame};
use plumb_syscalls::{Bursts, CallEnd, CallGroup, CallSummary, Outcome, SystemCall, errno_name, named};
use serde_json::{Map, Value};

use crate::column::{Column, Unit};

document! {
    /// A call. `begin_ns`: begin of the trace; `args` and `result`: arguments and outcome in words.
    pub struct TracedCall as "TracedCall" of (call: &SystemCall<'_>, begin_ns: u64, args: BTreeMap<String, String>, result: String) {
        version: u32 = crate::JSON_VERSION,
        time_ns: u64 = call.begin_ns.saturating_sub(begin_ns),
        latency_ns: Option<u64> = call.latency_ns(),
        comm: String = String::from_utf8_lossy(call.comm).into_owned(),
        pid: u32 = call.pid,
        tid: u32 = call.tid,
        call: Cow<'static, str> = named(call.abi, call.number),
        args: BTreeMap<String, String> = args,
        raw_args: [u64; 6] = call.args,
        result: String = result,
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        end: Map<String, Value> = Map::from_iter([end(call.end)]),
        /// Frames, the innermost first, where stacks are recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub stack: Option<Vec<CallFrame>> = None,
    }
}

fn end(end: CallEnd) -> (String, Value) {
    let (name, value) = match end {
        CallEnd::Returned(Outcome::Value(value)) => ("value", value.into()),
        CallEnd::Returned(Outcome::Error(number)) => {
            ("error", errno_name(number).map_or_else(|| number.into(), Value::from))
        }
        CallEnd::Unfinished => ("unfinished", true.into()),
        CallEnd::ThreadEnded => ("thread_ended", true.into()),
    };
    (name.to_owned(), value)
}

document! {
    /// A frame of a call's stack.
    pub struct CallFrame as "CallFrame" of (frame: &ViewFrame<'_>) {
        name: String = frame.name.to_string(),
        dso: String = frame.dso_path.to_owned(),
        inlined: bool = frame.inlined,
        file: String = frame.file.to_owned(),
        line: u32 = frame.line,
        marker: bool = frame.kind == Kind::Marker,
    }
}

document! {
    /// Calls that were dropped since the last such line.
    pub struct DroppedCalls as "DroppedCalls" of (dropped: u64) {
        version: u32 = crate::JSON_VERSION,
        dropped: u64 = dropped,
    }
}

document! {
    /// The calls of a name.
    pub struct CallSummaryRow as "CallSummary" of (name: &str, summary: &CallSummary) {
        version: u32 = crate::JSON_VERSION,
        call: String = name.to_owned(),
        calls: u64 = summary.calls,
        errors: u64 = summary.failed(),
        by_error: BTreeMap<String, u64> = summary.errors().into_iter().collect(),
        unmeasured: u64 = summary.unmeasured,
        total_ns: u64 = summary.latencies.total_ns(),
        p50_ns: Option<u64> = summary.latencies.quantile_ns(0.5),
        p99_ns: Option<u64> = summary.latencies.quantile_ns(0.99),
        max_ns: u64 = summary.latencies.max_ns(),
    }
}

/// Returns the columns of the calls by name.
pub fn summary_columns() -> [Column<CallSummaryRow>; 7] {
    use Unit::{Plain, Weight};
    [
        Column::headed("call", "call", Plain, |row| row.call.as_str().into()),
        Column::headed("calls", "calls", Plain, |row| row.calls.into()),
        Column::headed("errors", "errors", Plain, |row| row.errors.into()),
        Column::headed("total_ns", "total", Weight, |row| row.total_ns.into()),
        Column::headed("p50_ns", "p50", Weight, |row| row.p50_ns.into()),
        Column::headed("p99_ns", "p99", Weight, |row| row.p99_ns.into()),
        // The longest of no calls is unknown.
        Column::headed("max_ns", "max", Weight, |row| row.p50_ns.map(|_| row.max_ns).into()),
    ]
}

document! {
    /// Latencies over time: the length of a column, and rows from the longest latencies to the shortest.
    pub struct LatencyHeatMap as "LatencyHeatMap" of (column_ns: u64, rows: Vec<(u64, Vec<u64>)>) {
        version: u32 = crate::JSON_VERSION,
        column_ns: u64 = column_ns,
        rows: Vec<LatencyRow> = rows.into_iter().map(LatencyRow::new).collect(),
    }
}

document! {
    struct LatencyRow as "LatencyRow" of (row: (u64, Vec<u64>)) {
        from_ns: u64 = row.0,
        calls: Vec<u64> = row.1,
    }
}

document! {
    /// Calls that come by the clock or in bursts.
    pub struct RepeatedCallsRow<'c> as "RepeatedCalls" of (of: &'c CallGroup, bursts: Bursts) {
        version: u32 = crate::JSON_VERSION,
        call: &'c str = &of.call,
        file: Option<&'c str> = of.file.as_deref(),
        comm: &'c str = &of.comm,
        pid: u32 = of.pid,
        bursts: usize = bursts.number,
        period_ns: u64 = bursts.period_ns,
        spread_ns: u64 = bursts.spread_ns,
        regular: bool = bursts.is_regular,
        waits: bool = of.waits(&bursts),
        calls_per_burst: usize = bursts.calls,
        burst_ns: u64 = bursts.length_ns,
        calls: u64 = of.latencies.number(),
        total_ns: u64 = of.latencies.total_ns(),
        p50_ns: Option<u64> = of.latencies.quantile_ns(0.5),
        p99_ns: Option<u64> = of.latencies.quantile_ns(0.99),
        max_ns: u64 = of.latencies.max_ns(),
        buffer: Option<[u64; 2]> = of.buffer,
        given: u64 = of.given,
    }
}
