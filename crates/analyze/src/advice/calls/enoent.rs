//! Rule: files are looked up where they do not exist.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, ENOENT, Found, MOST, Rule, Watch, count, in_percent, percent, text};

const CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
];
/// Minimum number of failed lookups.
const LEAST_FAILED: u64 = 200;
/// Minimum share of failed lookups.
const LEAST_SHARE: f64 = 0.3;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "search-path-storm",
        claim: "looks for files that are not there",
        pattern: "most files that are asked for are not there: a search path is gone through again and again",
        threshold: text(format!(
            "{LEAST_FAILED} that fail with ENOENT, and {} of all opens, stats and accesses",
            in_percent(LEAST_SHARE)
        )),
        remedy: "put the directory that has them first, or name it: PATH, PYTHONPATH, RPATH and ldconfig's cache, include paths; or remember \
                 what was not there",
        bound: "the calls that fail",
        source: "GNU Guix, Taming the stat storm with a loader cache; measured: 0.86 us each, if what they look up is in memory",
    };
    CallRule::new(rule, CALLS, || Box::<Lookups>::default())
}

#[derive(Default)]
struct Lookups {
    calls: u64,
    failed: u64,
    wall_ns: u64,
    /// Counts by file name, without the directory.
    names: FxHashMap<String, u64>,
}

impl Watch for Lookups {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        if call.result != ENOENT {
            return;
        }
        self.failed += 1;
        self.wall_ns = self.wall_ns.saturating_add(call.wall_ns);
        let name = call.path.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        if self.names.len() < MOST || self.names.contains_key(name) {
            *self.names.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        if self.failed < LEAST_FAILED || (self.failed as f64) < LEAST_SHARE * self.calls as f64 {
            return None;
        }
        let often = self.names.iter().max_by_key(|(name, times)| (**times, *name));
        let cpu_ns = basis.part(CALLS, self.failed, self.calls);
        Some(Found {
            about: often.map(|(name, _)| name.clone()).unwrap_or_default(),
            measured: vec![
                count("not there", self.failed),
                percent("of all lookups", self.failed as f64, self.calls as f64),
                percent("these calls", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            // If the disk has to be read, this time dominates.
            wall_ns: self.wall_ns as f64,
            ..Found::default()
        })
    }
}
