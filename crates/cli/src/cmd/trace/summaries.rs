//! Summaries of all calls, at the end: a table by call, a heat map of latencies over time, and bursts.

mod picture;
mod spikes;
mod summary;

use std::io::{self, Write};

use plumb_documents::json;
use plumb_documents::trace::{CallSummaryRow, LatencyHeatMap, RepeatedCallsRow};
use plumb_syscalls::{CallGroups, CallSummaries, Descriptors, Heat, Signature, SystemCall};

/// Number of time steps of the heat map in JSON.
const COLUMNS: usize = 128;

/// The requested summaries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// The table by call.
    pub summary: bool,
    /// The heat map of latencies over time.
    pub histogram: bool,
    /// Periodic calls and bursts.
    pub spikes: bool,
}

impl Wanted {
    /// Whether any summary replaces the lines.
    pub fn any(self) -> bool {
        self.summary || self.histogram || self.spikes
    }

    /// Whether arguments of calls are needed.
    pub fn looks_at_arguments(self) -> bool {
        self.spikes || !self.any()
    }
}

/// Summaries of the calls so far.
pub(super) struct Tables {
    wanted: Wanted,
    begin_ns: u64,
    calls: CallSummaries,
    heat: Heat,
    groups: CallGroups,
}

impl Tables {
    /// `begin_ns`: time zero of the summaries.
    pub fn new(wanted: Wanted, begin_ns: u64) -> Self {
        let (calls, heat, groups) = Default::default();
        Self { wanted, begin_ns, calls, heat, groups }
    }

    /// Counts a call, and updates the descriptors with its effect.
    pub fn add(&mut self, call: &SystemCall<'_>, signature: &Signature, descriptors: &mut Descriptors) {
        if self.wanted.summary {
            self.calls.add(call);
        }
        if let Some(latency) = call.latency_ns().filter(|_| self.wanted.histogram) {
            self.heat.add(call.begin_ns.saturating_sub(self.begin_ns), latency);
        }
        if self.wanted.spikes {
            self.groups.add(call, signature, descriptors);
            descriptors.apply(call, signature);
        }
    }

    /// The summaries as text, at most `width` columns wide where possible.
    pub fn text(&mut self, width: usize) -> String {
        let mut parts = Vec::new();
        if self.wanted.summary {
            parts.push(summary::text(&self.calls));
        }
        if self.wanted.histogram {
            parts.push(picture::text(&self.heat, width));
        }
        if self.wanted.spikes {
            parts.push(spikes::text(&mut self.groups));
        }
        parts.join("\n")
    }

    /// Writes the summaries as JSON, an object per line.
    pub fn json(&mut self, mut out: impl Write) -> io::Result<()> {
        if self.wanted.summary {
            for (name, calls) in self.calls.sorted() {
                json::write(&CallSummaryRow::new(&name, calls), &mut out)?;
            }
        }
        if self.wanted.histogram {
            let (column_ns, rows) = self.heat.rows(COLUMNS);
            json::write(&LatencyHeatMap::new(column_ns, rows), &mut out)?;
        }
        if self.wanted.spikes {
            for (calls, bursts) in self.groups.repeated() {
                json::write(&RepeatedCallsRow::new(calls, bursts), &mut out)?;
            }
        }
        Ok(())
    }
}

/// Formats a time with about three digits.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}
