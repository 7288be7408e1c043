//! Rule: each write waits for the disk, because the file was opened with O_SYNC or O_DSYNC.

use super::sizes::Sizes;
use super::{
    Basis, CallEvent, CallRule, Found, Measure, Rule, Watch, count, in_percent, percent, size, text,
};

const CALLS: &[&str] = &["write", "pwrite64", "writev", "pwritev"];
/// Maximum size of a small write, in bytes. Such a write into the page cache takes a few microseconds; larger ones
/// may have to wait for free pages.
const SMALL: u64 = 64 << 10;
/// Minimum duration of a write that waited for a device, in nanoseconds.
const SLOW_NS: u64 = 50_000;
/// Minimum share of such writes.
const MOST_SLOW: f64 = 0.8;
/// Minimum share of the elapsed time.
const LEAST_SHARE: f64 = 0.1;
const LEAST_CALLS: u64 = 20;
/// Directories of special files, whose writes wait for something else.
const SPECIAL: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "sync-write",
        claim: "waits for the disk at each write (O_SYNC)",
        pattern: "small writes to files take as long as a device takes, as they do where these were opened with O_SYNC or O_DSYNC",
        threshold: text(format!(
            "{} of {LEAST_CALLS} or more writes of at most {} take more than {} us, {} of the elapsed time together",
            in_percent(MOST_SLOW),
            size(SMALL),
            SLOW_NS as f64 / 1e3,
            in_percent(LEAST_SHARE)
        )),
        remedy: "write several records with one call, or without O_SYNC and with one fdatasync for several",
        bound: "the time in these writes",
        source: "open(2): O_SYNC and O_DSYNC; measured: 7 us for 4 KiB into the page cache, 440 us with O_SYNC",
    };
    CallRule::new(rule, CALLS, || Box::<Writes>::default())
}

#[derive(Default)]
struct Writes {
    all: u64,
    small: u64,
    slow: Sizes,
}

impl Watch for Writes {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        let is_file = |path: &&str| path.starts_with('/') && !SPECIAL.iter().any(|s| path.starts_with(s));
        let is_small = u64::try_from(call.result).is_ok_and(|bytes| bytes <= SMALL);
        if call.path.filter(is_file).is_none() || !is_small {
            return;
        }
        self.small += 1;
        if call.wall_ns >= SLOW_NS {
            self.slow.add(call.wall_ns);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let wall_ns = self.slow.bytes as f64;
        let is_most = self.slow.calls as f64 >= MOST_SLOW * self.small as f64;
        let is_long = wall_ns >= LEAST_SHARE * basis.span_ns;
        (self.slow.calls >= LEAST_CALLS && is_most && is_long).then(|| Found {
            measured: vec![
                count("writes", self.slow.calls),
                Measure { what: "mean", value: self.slow.mean() / 1e6, unit: "ms" },
                percent("of the elapsed time", wall_ns, basis.span_ns),
            ],
            wall_ns,
            cpu_ns: basis.part(CALLS, self.slow.calls, self.all),
            ..Found::default()
        })
    }
}
