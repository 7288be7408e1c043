//! Rule: one file is opened repeatedly.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, percent, rate, text};

const OPENS: &[&str] = &["open", "openat", "openat2"];
/// Minimum number of opens of a file.
const LEAST_TIMES: u64 = 10;
/// Minimum number of opens of a file per second.
const LEAST_PER_SECOND: f64 = 100.0;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "reopened-file",
        claim: "opens and closes one file again and again",
        pattern: "the same file is opened and closed again and again",
        threshold: text(format!("{LEAST_TIMES} times, and {LEAST_PER_SECOND} times a second")),
        remedy: "keep it open: pread(fd, ..., 0) reads a file of /proc or /sys anew; inotify tells when a configuration changes",
        bound: "its opens and closes",
        source: "measured: open and close 1.66 us, of /proc/self/stat with its read 7 us",
    };
    CallRule::new(rule, &["open", "openat", "openat2", "close"], || Box::<Opens>::default())
}

#[derive(Default)]
struct Opens {
    opens: u64,
    closes: u64,
    paths: FxHashMap<String, u64>,
}

impl Watch for Opens {
    fn call(&mut self, call: &CallEvent<'_>) {
        if call.name == "close" {
            self.closes += 1;
            return;
        }
        self.opens += 1;
        let Some(path) = call.path.filter(|_| call.result >= 0) else { return };
        if let Some(times) = self.paths.get_mut(path) {
            *times += 1;
        } else if self.paths.len() < MOST {
            self.paths.insert(path.to_owned(), 1);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let often = |times: &u64| *times >= LEAST_TIMES && basis.rate(*times) >= LEAST_PER_SECOND;
        let all: Vec<(&String, &u64)> = self.paths.iter().filter(|(_, times)| often(times)).collect();
        let (path, &most) = *all.iter().max_by_key(|(path, times)| (**times, *path))?;
        let times: u64 = all.iter().map(|(_, times)| **times).sum();
        let opens = basis.part(OPENS, times, self.opens);
        let cpu_ns = opens + basis.part(&["close"], times.min(self.closes), self.closes);
        Some(Found {
            about: path.clone(),
            measured: vec![
                rate("opened", basis.rate(most)),
                count("files that are", all.len() as u64),
                percent("open and close of them", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
