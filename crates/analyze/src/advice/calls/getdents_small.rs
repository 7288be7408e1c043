//! Rule: directories are listed through a small buffer.

use super::{Basis, CallEvent, CallRule, Found, Measure, Rule, Watch, count, percent, size, text};

const CALLS: &[&str] = &["getdents64", "getdents"];
/// Average buffer size in bytes below which a buffer is small.
const SMALL: f64 = 4096.0;
/// Minimum number of calls per directory.
const LEAST_EACH: f64 = 3.0;
/// Size of a good buffer in bytes.
const BUFFER: f64 = 32768.0;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "small-listing-buffer",
        claim: "lists directories through a small buffer",
        pattern: "directories are listed by many calls, each with a small buffer",
        threshold: text(format!(
            "less than {} of buffer on average, and {LEAST_EACH} calls for each directory",
            size(SMALL as u64)
        )),
        remedy: "give getdents64 32 KiB or more, or use readdir of the C library, which does",
        bound: text(format!("the calls that a buffer of {} would spare", size(BUFFER as u64))),
        source: "glibc's readdir: 32 KiB; not for /proc, where the cost is in the entries",
    };
    CallRule::new(rule, CALLS, || Box::<Listings>::default())
}

#[derive(Default)]
struct Listings {
    all: u64,
    /// Calls for directories outside of /proc, where the cost is in the entries.
    calls: u64,
    ends: u64,
    room: u64,
    bytes: u64,
}

impl Watch for Listings {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        if call.result < 0 || call.path.is_some_and(|path| path.starts_with("/proc")) {
            return;
        }
        self.calls += 1;
        self.ends += u64::from(call.result == 0);
        self.room += call.arguments[2].min(1 << 30);
        self.bytes = self.bytes.saturating_add(call.result.unsigned_abs());
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let room = self.room as f64 / self.calls.max(1) as f64;
        let each = self.calls as f64 / self.ends.max(1) as f64;
        if self.calls == 0 || room >= SMALL || each < LEAST_EACH {
            return None;
        }
        let needed = 2.0 * self.ends as f64 + self.bytes as f64 / BUFFER;
        let spared = (self.calls as f64 - needed).max(0.0);
        // The entries still have to be produced: only calls and repeated seeks are saved.
        let took = basis.part(CALLS, self.calls, self.all);
        Some(Found {
            measured: vec![
                count("calls", self.calls),
                Measure { what: "buffer", value: room, unit: "B" },
                Measure { what: "calls for each directory", value: each, unit: "" },
                percent("getdents64", took, basis.cpu_ns),
            ],
            cpu_ns: took * spared / self.calls as f64,
            ..Found::default()
        })
    }
}
