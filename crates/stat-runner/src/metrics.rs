//! The figures of a run: names, units, definitions.

use plumb_documents::metric::MetricUnit;

use crate::RunStats;

/// A metric of a run.
pub struct Metric {
    /// Name in JSON.
    pub name: &'static str,
    /// Title in text output.
    pub title: &'static str,
    /// Unit.
    pub unit: MetricUnit,
    /// Value of a run, if it was measured.
    pub value: fn(&RunStats) -> Option<f64>,
}

/// All metrics, in display order.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "wall_ns",
        title: "wall",
        unit: MetricUnit::Time,
        value: |run| Some(run.wall.as_nanos() as f64),
    },
    Metric { name: "cpu_ns", title: "user+sys", unit: MetricUnit::Time, value: |run| Some(cpu(run)) },
    Metric {
        name: "cpus_used",
        title: "processors used",
        unit: MetricUnit::Ratio,
        value: |run| Some(cpu(run) / (run.wall.as_nanos() as f64).max(1.0)),
    },
    Metric {
        name: "max_rss_bytes",
        title: "most memory of a process",
        unit: MetricUnit::Bytes,
        value: |run| {
            let most = run.usage.max_rss_bytes;
            // The steps before the exec use a little more memory.
            (most > run.rss_floor_bytes + (512 << 10)).then_some(most as f64)
        },
    },
    Metric {
        name: "minor_faults",
        title: "page faults",
        unit: MetricUnit::Count,
        value: |run| Some(run.usage.faults[0] as f64),
    },
    Metric {
        name: "major_faults",
        title: "page faults from disk",
        unit: MetricUnit::Count,
        value: |run| Some(run.usage.faults[1] as f64),
    },
    Metric {
        name: "voluntary_switches",
        title: "switches to wait",
        unit: MetricUnit::Count,
        value: |run| Some(run.usage.switches[0] as f64),
    },
    Metric {
        name: "involuntary_switches",
        title: "switches, preempted",
        unit: MetricUnit::Count,
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
        unit: MetricUnit::Ratio,
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
    Metric { name, title, unit: MetricUnit::Count, value }
}

/// Returns the metric of a name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl RunStats {
    /// CPU time in the kernel, in nanoseconds, by its share of the samples.
    pub fn kernel_ns(&self) -> Option<f64> {
        let seen = self.seen.as_ref()?;
        let all = (seen.kernel + seen.user) as f64;
        (all > 0.0).then(|| seen.kernel as f64 / all * cpu(self))
    }
}

fn cpu(run: &RunStats) -> f64 {
    run.usage.cpu.total_ns() as f64
}

fn counted(run: &RunStats, name: &str) -> Option<f64> {
    run.counts.iter().find(|count| count.name == name).map(|count| count.count as f64)
}
