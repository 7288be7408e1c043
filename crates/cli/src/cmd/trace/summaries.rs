//! Summaries of all calls, at the end: a table by call, a heat map of latencies over time, and bursts.

mod picture;
mod spikes;
mod summary;

use std::collections::HashMap;

use plumb_syscalls::{Abi, Descriptors, Heat, Signature, SystemCall};

use spikes::Spikes;
use summary::Row;

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
    rows: HashMap<(Abi, u32), Row>,
    heat: Heat,
    spikes: Spikes,
}

impl Tables {
    /// `begin_ns`: time zero of the summaries.
    pub fn new(wanted: Wanted, begin_ns: u64) -> Self {
        Self { wanted, begin_ns, rows: HashMap::new(), heat: Heat::default(), spikes: Spikes::default() }
    }

    /// Counts a call, and updates the descriptors with its effect.
    pub fn add(&mut self, call: &SystemCall<'_>, signature: &Signature, descriptors: &mut Descriptors) {
        if self.wanted.summary {
            self.rows.entry((call.abi, call.number)).or_default().add(call);
        }
        if let Some(latency) = call.latency_ns().filter(|_| self.wanted.histogram) {
            self.heat.add(call.begin_ns.saturating_sub(self.begin_ns), latency);
        }
        if self.wanted.spikes {
            self.spikes.add(call, signature, descriptors);
            descriptors.apply(call, signature);
        }
    }

    /// The summaries as text, at most `width` columns wide where possible.
    pub fn text(&mut self, width: usize) -> String {
        let mut parts = Vec::new();
        if self.wanted.summary {
            parts.push(summary::text(&self.rows));
        }
        if self.wanted.histogram {
            parts.push(picture::text(&self.heat, width));
        }
        if self.wanted.spikes {
            parts.push(self.spikes.text());
        }
        parts.join("\n")
    }

    /// The summaries as JSON, an object per line.
    pub fn json(&mut self) -> String {
        let mut lines = Vec::new();
        if self.wanted.summary {
            lines.extend(summary::json(&self.rows));
        }
        if self.wanted.histogram {
            lines.push(picture::json(&self.heat));
        }
        if self.wanted.spikes {
            lines.extend(self.spikes.json());
        }
        let text = |line| plumb_formats::json::line(line).unwrap_or_default() + "\n";
        lines.iter().map(text).collect()
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
