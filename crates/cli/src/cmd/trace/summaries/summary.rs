//! The table by call.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use plumb_syscalls::{Abi, CallEnd, Latencies, SystemCall, errno_name, named};
use serde_json::{Value, json};

use super::time;

/// Calls with the same number.
#[derive(Debug, Default)]
pub(super) struct Row {
    calls: u64,
    errors: BTreeMap<u32, u64>,
    /// Calls without a latency, as their end or start was not recorded.
    unmeasured: u64,
    latencies: Latencies,
}

impl Row {
    pub fn add(&mut self, call: &SystemCall<'_>) {
        self.calls += 1;
        if let Some(error) = call.error() {
            *self.errors.entry(error).or_default() += 1;
        }
        match call.latency_ns().filter(|_| matches!(call.end, CallEnd::Returned(_))) {
            Some(latency) => self.latencies.add(latency),
            None => self.unmeasured += 1,
        }
    }

    fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Errors by name, most frequent first.
    fn errors(&self) -> Vec<(String, u64)> {
        let name = |number: u32| errno_name(number).map_or_else(|| number.to_string(), str::to_owned);
        let mut errors: Vec<_> = self.errors.iter().map(|(&number, &count)| (name(number), count)).collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        errors
    }
}

/// The rows, most time first.
fn sorted(rows: &HashMap<(Abi, u32), Row>) -> Vec<(String, &Row)> {
    let mut rows: Vec<_> =
        rows.iter().map(|(&(abi, number), row)| (named(abi, number).into_owned(), row)).collect();
    rows.sort_by(|(one, first), (other, second)| {
        let by_time = second.latencies.total_ns().cmp(&first.latencies.total_ns());
        by_time.then(second.calls.cmp(&first.calls)).then(one.cmp(other))
    });
    rows
}

/// The table as text.
pub(super) fn text(rows: &HashMap<(Abi, u32), Row>) -> String {
    let mut out = format!(
        "{:<20} {:>10} {:>8} {:>11} {:>11} {:>11} {:>11}  errors\n",
        "call", "calls", "errors", "total", "p50", "p99", "max"
    );
    for (name, row) in sorted(rows) {
        let latency = |share| row.latencies.quantile_ns(share).map_or_else(|| "-".to_owned(), time);
        let _ = write!(
            out,
            "{name:<20} {:>10} {:>8} {:>11} {:>11} {:>11} {:>11}",
            row.calls,
            row.failed(),
            time(row.latencies.total_ns()),
            latency(0.5),
            latency(0.99),
            latency(1.0)
        );
        let errors = row.errors().into_iter().map(|(name, count)| format!("{name} {count}"));
        let mut said: Vec<String> = errors.collect();
        if row.unmeasured > 0 {
            said.push(format!("{} of unknown latency", row.unmeasured));
        }
        if !said.is_empty() {
            let _ = write!(out, "  {}", said.join(", "));
        }
        out.push('\n');
    }
    out
}

/// The table as JSON.
pub(super) fn json(rows: &HashMap<(Abi, u32), Row>) -> Vec<Value> {
    let row = |(name, row): (String, &Row)| {
        json!({
            "version": plumb_documents::JSON_VERSION,
            "call": name,
            "calls": row.calls,
            "errors": row.failed(),
            "by_error": row.errors().into_iter().collect::<BTreeMap<_, _>>(),
            "unmeasured": row.unmeasured,
            "total_ns": row.latencies.total_ns(),
            "p50_ns": row.latencies.quantile_ns(0.5),
            "p99_ns": row.latencies.quantile_ns(0.99),
            "max_ns": row.latencies.max_ns(),
        })
    };
    sorted(rows).into_iter().map(row).collect()
}
