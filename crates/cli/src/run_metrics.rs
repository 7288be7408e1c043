//! The figures of a run: names, definitions, and formatting.

use plumb_stat_runner::RunStats;

/// Unit of a figure, which decides its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes of memory.
    Bytes,
    /// A count.
    Count,
    /// A plain number with two decimals.
    Ratio,
    /// Any number, with four figures.
    Number,
}

/// A figure.
pub struct Metric {
    /// Name in JSON.
    pub name: &'static str,
    /// Title in text output.
    pub title: &'static str,
    pub unit: Unit,
    pub value: fn(&RunStats) -> Option<f64>,
}

/// All figures, in display order.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "wall_ns",
        title: "wall",
        unit: Unit::Time,
        value: |run| Some(run.wall.as_nanos() as f64),
    },
    Metric { name: "cpu_ns", title: "user+sys", unit: Unit::Time, value: |run| Some(cpu(run)) },
    Metric {
        name: "cpus_used",
        title: "processors used",
        unit: Unit::Ratio,
        value: |run| Some(cpu(run) / (run.wall.as_nanos() as f64).max(1.0)),
    },
    Metric {
        name: "max_rss_bytes",
        title: "most memory of a process",
        unit: Unit::Bytes,
        value: |run| {
            let most = run.usage.max_rss_bytes;
            // The steps before the exec use a little more memory.
            (most > run.rss_floor_bytes + (512 << 10)).then_some(most as f64)
        },
    },
    Metric {
        name: "minor_faults",
        title: "page faults",
        unit: Unit::Count,
        value: |run| Some(run.usage.faults[0] as f64),
    },
    Metric {
        name: "major_faults",
        title: "page faults from disk",
        unit: Unit::Count,
        value: |run| Some(run.usage.faults[1] as f64),
    },
    Metric {
        name: "voluntary_switches",
        title: "switches to wait",
        unit: Unit::Count,
        value: |run| Some(run.usage.switches[0] as f64),
    },
    Metric {
        name: "involuntary_switches",
        title: "switches, preempted",
        unit: Unit::Count,
        value: |run| Some(run.usage.switches[1] as f64),
    },
    counter("context-switches", "context switches", |run| counted(run, "context-switches")),
    counter("cpu-migrations", "migrations", |run| counted(run, "cpu-migrations")),
    counter("calls", "system calls", |run| run.seen.as_ref()?.calls.map(|calls| calls as f64)),
    counter("cycles", "cycles", |run| counted(run, "cycles")),
    counter("instructions", "instructions", |run| counted(run, "instructions")),
    Metric {
        name: "instructions_per_cycle",
        title: "instructions per cycle",
        unit: Unit::Ratio,
        value: |run| Some(counted(run, "instructions")? / counted(run, "cycles")?.max(1.0)),
    },
    counter("branches", "branches", |run| counted(run, "branches")),
    counter("branch-misses", "branch misses", |run| counted(run, "branch-misses")),
    counter("cache-references", "cache references", |run| counted(run, "cache-references")),
    counter("cache-misses", "cache misses", |run| counted(run, "cache-misses")),
    counter("stalled-cycles-frontend", "stalled cycles, front end", |run| {
        counted(run, "stalled-cycles-frontend")
    }),
    counter("stalled-cycles-backend", "stalled cycles, back end", |run| {
        counted(run, "stalled-cycles-backend")
    }),
    counter("blocks_read", "512-byte blocks read", |run| Some(run.usage.blocks[0] as f64)),
    counter("blocks_written", "512-byte blocks written", |run| Some(run.usage.blocks[1] as f64)),
];

const fn counter(name: &'static str, title: &'static str, value: fn(&RunStats) -> Option<f64>) -> Metric {
    Metric { name, title, unit: Unit::Count, value }
}

fn cpu(run: &RunStats) -> f64 {
    run.usage.cpu.total_ns() as f64
}

fn counted(run: &RunStats, name: &str) -> Option<f64> {
    run.counts.iter().find(|count| count.name == name).map(|count| count.count as f64)
}

impl Unit {
    /// Formats a value as text.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Time => time(value),
            Unit::Bytes => bytes(value),
            Unit::Count => thousands(value),
            Unit::Ratio => format!("{value:.2}"),
            Unit::Number if value >= 1000.0 => thousands(value),
            Unit::Number => {
                let decimals = if value >= 100.0 { 1 } else { 3 };
                format!("{value:.decimals$}")
            }
        }
    }
}

/// A duration with four significant digits.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e3, "us"),
    };
    let decimals = if value >= 100.0 {
        1
    } else if value >= 10.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$} {unit}")
}

fn bytes(bytes: f64) -> String {
    const MIB: f64 = 1_048_576.0;
    if bytes >= 1024.0 * MIB {
        format!("{:.2} GiB", bytes / 1024.0 / MIB)
    } else {
        format!("{:.1} MiB", bytes / MIB)
    }
}

/// A number with thousands separators.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_for_people() {
        assert_eq!(Unit::Time.text(1_234_567_890.0), "1.235 s");
        assert_eq!(Unit::Time.text(12_345_678.0), "12.35 ms");
        assert_eq!(Unit::Time.text(123_456.0), "123.5 us");
        assert_eq!(Unit::Count.text(1_234_567.0), "1,234,567");
        assert_eq!(Unit::Count.text(0.0), "0");
        assert_eq!(Unit::Bytes.text(1_572_864.0), "1.5 MiB");
        assert_eq!(Unit::Ratio.text(0.999), "1.00");
    }
}
