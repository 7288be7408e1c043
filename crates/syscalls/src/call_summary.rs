//! Traced system calls summed up by name: number, errors, latencies.
//!
//! Elsewhere: sums of calls that the kernel counts (`account`).

use std::collections::{BTreeMap, HashMap};

use crate::{Abi, CallEnd, Latencies, SystemCall, errno_name, named};

/// Traced calls of one name.
#[derive(Clone, Debug, Default)]
pub struct CallSummary {
    /// Number of calls.
    pub calls: u64,
    /// Number of calls whose begin or end was not traced.
    pub unmeasured: u64,
    /// Latencies of the others.
    pub latencies: Latencies,
    errors: BTreeMap<u32, u64>,
}

impl CallSummary {
    fn add(&mut self, call: &SystemCall<'_>) {
        self.calls += 1;
        if let Some(error) = call.error() {
            *self.errors.entry(error).or_default() += 1;
        }
        match call.latency_ns().filter(|_| matches!(call.end, CallEnd::Returned(_))) {
            Some(latency) => self.latencies.add(latency),
            None => self.unmeasured += 1,
        }
    }

    /// Number of failed calls.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Failed calls by the error's name, or its number without a name; the most frequent first.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let name = |number: u32| errno_name(number).map_or_else(|| number.to_string(), str::to_owned);
        let mut errors: Vec<_> = self.errors.iter().map(|(&number, &count)| (name(number), count)).collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        errors
    }
}

/// Traced calls by name.
#[derive(Clone, Debug, Default)]
pub struct CallSummaries(HashMap<(Abi, u32), CallSummary>);

impl CallSummaries {
    /// Adds a call.
    pub fn add(&mut self, call: &SystemCall<'_>) {
        self.0.entry((call.abi, call.number)).or_default().add(call);
    }

    /// Names and their calls, most time first.
    pub fn sorted(&self) -> Vec<(String, &CallSummary)> {
        let name = |&(abi, number): &(Abi, u32)| named(abi, number).into_owned();
        let mut all: Vec<_> = self.0.iter().map(|(call, summary)| (name(call), summary)).collect();
        all.sort_by(|(one, first), (other, second)| {
            let by_time = second.latencies.total_ns().cmp(&first.latencies.total_ns());
            by_time.then(second.calls.cmp(&first.calls)).then(one.cmp(other))
        });
        all
    }
}
