//! What cargo and the test binaries print, line by line: which suite runs, its result, which tests failed.

use std::time::Duration;

/// The sums over all suites that have ended.
#[derive(Debug, Default)]
pub struct Tally {
    /// Name and duration of each suite.
    pub suites: Vec<(String, Duration)>,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that are ignored.
    pub ignored: u64,
    /// Measurements of the test runner.
    pub measured: u64,
    /// Tests that were left out by name.
    pub filtered: u64,
    /// Suite and test of each failure; suites that ended without a result have no test.
    pub failures: Vec<(String, String)>,
    /// The suite that runs, and when it began.
    pub(super) running: Option<(String, Duration)>,
}

impl Tally {
    /// Reads a line that came `at` after the beginning.
    pub fn read(&mut self, line: &str, at: Duration) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // `Running tests/flame.rs (target/debug/deps/flame-0123)`, `Running unittests src/lib.rs (…)`
            ["Running", .., program] if program.starts_with('(') => self.begin(suite(program, line), at),
            ["Doc-tests", name] => self.begin(format!("{name} (documentation)"), at),
            ["test", "result:", ..] => self.end(line, at),
            // A test's own output may be before the word.
            ["test", name, .., "FAILED"] => {
                let suite = self.running.as_ref().map_or_else(String::new, |(name, _)| name.clone());
                self.failures.push((suite, name.to_owned()));
            }
            _ => {}
        }
    }

    /// After the last line: a suite without a result has died.
    pub fn died(&self) -> Option<&str> {
        self.running.as_ref().map(|(name, _)| name.as_str())
    }

    fn begin(&mut self, name: String, at: Duration) {
        if let Some((name, _)) = self.running.replace((name, at)) {
            self.failures.push((name, "the suite ended without a result".to_owned()));
        }
    }

    fn end(&mut self, line: &str, at: Duration) {
        let number = |what: &str| {
            let parts = line.split(['.', ';']).map(str::trim);
            parts.filter_map(|part| part.strip_suffix(what)).find_map(|part| part.trim().parse::<u64>().ok())
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed").unwrap_or(0);
        self.ignored += number("ignored").unwrap_or(0);
        self.measured += number("measured").unwrap_or(0);
        self.filtered += number("filtered out").unwrap_or(0);
        if let Some((name, began)) = self.running.take() {
            self.suites.push((name, at.saturating_sub(began)));
        }
    }
}

/// `unwind/tests/walk.rs` says more than `walk-0123`, but only the binary's name is there for tests of a library.
fn suite(program: &str, line: &str) -> String {
    let file = program.trim_matches(['(', ')']).rsplit('/').next().unwrap_or(program);
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    if line.contains("unittests") { format!("{name} (unit)") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Tally {
        let mut tally = Tally::default();
        for (second, line) in text.lines().enumerate() {
            tally.read(line, Duration::from_secs(second as u64));
        }
        tally
    }

    #[test]
    fn suites_are_summed_up() {
        let tally = read(
            "     Running unittests src/lib.rs (target/debug/deps/plumb_x-0a1b)\n\
             test a::b ... ok\n\
             test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\
             \x20    Running tests/walk.rs (target/debug/deps/walk-0a1b)\n\
             test walks ... skipped: no\nFAILED\n\
             test falls ... FAILED\n\
             test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
             \x20  Doc-tests plumb_x\n\
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        assert_eq!((tally.passed, tally.failed, tally.ignored, tally.filtered), (9, 1, 1, 2));
        assert_eq!(tally.failures, [("walk".to_owned(), "falls".to_owned())]);
        let suites: Vec<&str> = tally.suites.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(suites, ["plumb_x (unit)", "walk", "plumb_x (documentation)"]);
        assert_eq!(tally.suites[0].1, Duration::from_secs(2));
    }

    #[test]
    fn a_suite_that_dies_is_a_failure() {
        let dies = "     Running tests/walk.rs (target/debug/deps/walk-0a1b)\n";
        let tally = read(&format!("{dies}     Running tests/scan.rs (target/debug/deps/scan-0a1b)\n"));
        assert_eq!(tally.failures[0].0, "walk");
        assert_eq!(tally.died(), Some("scan"));
    }
}
