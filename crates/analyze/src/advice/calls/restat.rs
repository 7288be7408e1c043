//! Rule: the properties of one file are read repeatedly.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, grouped, percent, rate, text};

const CALLS: &[&str] = &["stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"];
/// Minimum number of calls for a file; below, their minimum rate per second of CPU time. (The elapsed time is longer
/// if others use the CPU.)
const LEAST_TIMES: u64 = 100;
const LEAST_PER_SECOND: f64 = 1000.0;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "repeated-stat",
        claim: "asks for one file's properties again and again (stat)",
        pattern: "the same file, which is there, is looked up by its path again and again",
        threshold: text(format!(
            "{LEAST_TIMES} times, and {} times in a second of processor time",
            grouped(LEAST_PER_SECOND)
        )),
        remedy: "remember the answer for a while (a second, a thousand requests), or let inotify tell when the file changes; fstat of an open \
                 file needs no path",
        bound: "these calls",
        source: "stat(2); measured: 0.86 us by a short path in memory",
    };
    CallRule::new(rule, CALLS, || Box::<Lookups>::default())
}

#[derive(Default)]
struct Lookups {
    all: u64,
    paths: FxHashMap<String, u64>,
}

impl Watch for Lookups {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        let Some(path) = call.path.filter(|path| call.result == 0 && !path.is_empty()) else { return };
        if let Some(times) = self.paths.get_mut(path) {
            *times += 1;
        } else if self.paths.len() < MOST {
            self.paths.insert(path.to_owned(), 1);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_often = |times: &u64| *times >= LEAST_TIMES && basis.rate_on_cpu(*times) >= LEAST_PER_SECOND;
        let all: Vec<(&String, &u64)> = self.paths.iter().filter(|(_, times)| is_often(times)).collect();
        let (path, &most) = *all.iter().max_by_key(|(path, times)| (**times, *path))?;
        let times: u64 = all.iter().map(|(_, times)| **times).sum();
        let cpu_ns = basis.part(CALLS, times, self.all);
        Some(Found {
            about: path.clone(),
            measured: vec![
                rate("looked up", basis.rate(most)),
                count("such files", all.len() as u64),
                percent("these calls", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
