//! Rule: each read or write is preceded by a seek.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, grouped, percent, text, word};

/// Minimum number of seeks per read or write of a descriptor.
const LEAST_RATIO: f64 = 0.5;
/// Minimum number of seeks.
const LEAST_SEEKS: u64 = 1000;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "seek-then-read",
        claim: "seeks before each read",
        pattern: "places in a file are read or written by two calls, lseek and read",
        threshold: text(format!(
            "a seek for every {} reads or writes of a descriptor, {} in all",
            word((1.0 / LEAST_RATIO) as u64),
            grouped(LEAST_SEEKS as f64)
        )),
        remedy: "pread and pwrite take the place along; or keep track of it and seek only where it changes",
        bound: "lseek",
        source: "judgement; pread(2)",
    };
    CallRule::new(rule, &["lseek", "read", "write", "readv", "writev"], || Box::<Seeks>::default())
}

#[derive(Default)]
struct Seeks {
    calls: u64,
    /// By process and descriptor: number of seeks, and number of reads and writes.
    files: FxHashMap<(u32, u64), (u64, u64)>,
}

impl Watch for Seeks {
    fn call(&mut self, call: &CallEvent<'_>) {
        let seeks = call.name == "lseek";
        self.calls += u64::from(seeks);
        let key = (call.pid, call.arguments[0]);
        if self.files.len() >= MOST && !self.files.contains_key(&key) {
            return;
        }
        let file = self.files.entry(key).or_default();
        if seeks { file.0 += 1 } else { file.1 += 1 }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_pair =
            |&&(seeks, moves): &&(u64, u64)| moves > 0 && seeks as f64 >= LEAST_RATIO * moves as f64;
        let sum = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        let (seeks, moves) = self.files.values().filter(is_pair).fold((0, 0), sum);
        let cpu_ns = basis.part(&["lseek"], seeks, self.calls);
        (seeks >= LEAST_SEEKS).then(|| Found {
            measured: vec![
                count("seeks", seeks),
                count("reads and writes of the same files", moves),
                percent("lseek", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
