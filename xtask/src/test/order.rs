//! In which order suites run, and which may not run at the same time.

use super::build::Suite;

/// Suites that take longest, by the summary of an earlier run. They begin first: one that began last would run on when all others have ended.
const FIRST: [&str; 6] = ["oracle", "explain", "pgo", "metrics", "agent", "off_cpu"];

/// Suites that measure something another busy program would change. They run last, one at a time. Each is a program of its own, as `cargo test` runs
/// the tests of one program side by side.
const ALONE: [&str; 17] = [
    "advice",
    "agent_observes",
    "calls",
    "eviction",
    "interpreted",
    "journal_memory",
    "journal_tables_memory",
    "kernel",
    "killed",
    "mappings",
    "off_cpu_python",
    "processes",
    "programs",
    "python_versions",
    "queued",
    "record",
    "record_python",
];

/// Suites that wait nearly all of the time. One runs beside as many others as there are processors.
const WAITING: [&str; 2] = ["metrics", "webhook"];

/// Beginnings of the names of suites of which one runs at a time: two agents on one machine see one another.
const ONE_AT_A_TIME: [&str; 1] = ["agent"];

/// Whether no other suite may run beside this one.
pub fn is_alone(suite: &Suite) -> bool {
    ALONE.contains(&suite.name.as_str())
}

/// Whether a suite leaves its processor to another.
pub fn is_waiting(suite: &Suite) -> bool {
    WAITING.contains(&suite.name.as_str())
}

/// Whether two suites may not run at the same time.
pub fn exclude(one: &str, other: &str) -> bool {
    ONE_AT_A_TIME.iter().any(|beginning| one.starts_with(beginning) && other.starts_with(beginning))
}

/// Sorts suites: the longest first, those that run alone last.
pub fn sort(suites: &mut [Suite]) {
    let first = |suite: &Suite| FIRST.iter().position(|name| *name == suite.name).unwrap_or(FIRST.len());
    suites.sort_by_key(|suite| (is_alone(suite), first(suite)));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ALONE, FIRST, WAITING};

    #[test]
    fn each_name_is_one_of_a_suite() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
        let folders: Vec<_> =
            crates.read_dir().unwrap().map(|one| one.unwrap().path().join("tests")).collect();
        for name in FIRST.iter().chain(&ALONE).chain(&WAITING) {
            let file = format!("{name}.rs");
            let is_there =
                |folder: &Path| folder.join(&file).exists() || folder.join("all").join(&file).exists();
            assert!(folders.iter().any(|folder| is_there(folder)), "no {file} in any crate");
        }
    }
}
