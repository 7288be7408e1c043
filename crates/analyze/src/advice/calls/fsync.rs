//! Rule: threads wait until data is written to disk.

use super::sizes::Sizes;
use super::{Basis, CallEvent, CallRule, Found, Measure, Rule, Watch, count, in_percent, percent, text};

const CALLS: &[&str] = &["fsync", "fdatasync", "sync_file_range", "msync"];
/// Minimum share of the elapsed time.
const LEAST_SHARE: f64 = 0.1;
/// Alternatively, the slowest percent of calls takes longer than this, in nanoseconds.
const SLOW_NS: u64 = 10_000_000;
/// Minimum number of calls for that alternative to be meaningful.
const LEAST_CALLS: u64 = 20;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "fsync-wait",
        claim: "waits for the disk at each record (fsync)",
        pattern: "threads wait until the disk has what they wrote",
        threshold: text(format!(
            "{} of the elapsed time, or one in a hundred takes more than {} ms",
            in_percent(LEAST_SHARE),
            SLOW_NS as f64 / 1e6
        )),
        remedy: "commit several records with one fsync, use fdatasync or O_DSYNC where the file's size does not change, write in a thread of \
                 its own; where single ones are slow, look at the disk",
        bound: "the time in fsync",
        source: "fsync(2) waits for the device; etcd: the slowest in a hundred below 10 ms for a write-ahead log",
    };
    CallRule::new(rule, CALLS, || Box::<Syncs>::default())
}

#[derive(Default)]
struct Syncs {
    times: Sizes,
    slow: u64,
}

impl Watch for Syncs {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.times.add(call.wall_ns);
        self.slow += u64::from(call.wall_ns > SLOW_NS);
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let wall_ns = self.times.bytes as f64;
        let is_slow = self.times.calls >= LEAST_CALLS && self.slow * 100 >= self.times.calls;
        (wall_ns >= LEAST_SHARE * basis.span_ns || is_slow).then(|| Found {
            measured: vec![
                count("calls watched", self.times.calls),
                Measure { what: "mean", value: self.times.mean() / 1e6, unit: "ms" },
                count("slower than 10 ms", self.slow),
                percent("of the elapsed time", wall_ns, basis.span_ns),
            ],
            wall_ns,
            cpu_ns: basis.part(CALLS, self.times.calls, self.times.calls),
            ..Found::default()
        })
    }
}
