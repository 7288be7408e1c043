//! What a test program prints: its result, which tests failed.

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
    /// Suite and test of each failure.
    pub failures: Vec<(String, String)>,
    /// Suite and test of each failure that did not occur again when the test ran alone.
    pub unsteady: Vec<(String, String)>,
}

impl Tally {
    /// Adds a suite that has ended, by its output. A suite without a result of its own has died. That of documentation has a result for each package.
    pub fn add(&mut self, suite: &str, output: &str, took: Duration, is_good: bool) {
        let failures = self.failures.len();
        let mut results = 0;
        for line in output.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["test", "result:", ..] => {
                    results += 1;
                    self.add_result(line);
                }
                // A test's own output may be before the word.
                ["test", name, .., "FAILED"] => self.failures.push((suite.to_owned(), name.to_owned())),
                _ => {}
            }
        }
        if results == 0 {
            self.failures.push((suite.to_owned(), "the suite ended without a result".to_owned()));
        } else if !is_good && self.failures.len() == failures {
            self.failures.push((suite.to_owned(), "the suite failed".to_owned()));
        }
        self.suites.push((suite.to_owned(), took));
    }

    /// Counts a failed test as passed, as it passes alone.
    pub fn passes_alone(&mut self, suite: &str, test: &str) {
        let Some(at) = self.failures.iter().position(|(of, failed)| of == suite && failed == test) else {
            return;
        };
        self.unsteady.push(self.failures.remove(at));
        self.failed = self.failed.saturating_sub(1);
        self.passed += 1;
    }

    fn add_result(&mut self, line: &str) {
        let number = |what: &str| {
            let parts = line.split(['.', ';']).map(str::trim);
            parts.filter_map(|part| part.strip_suffix(what)).find_map(|part| part.trim().parse::<u64>().ok())
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed").unwrap_or(0);
        self.ignored += number("ignored").unwrap_or(0);
        self.measured += number("measured").unwrap_or(0);
        self.filtered += number("filtered out").unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn suites_are_summed_up() {
        let mut tally = Tally::default();
        let good = "test a::b ... ok\n\
                    test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n";
        tally.add("plumb_x (unit)", good, SECOND, true);
        let bad = "test walks ... skipped: no\nFAILED\n\
                   test falls ... FAILED\n\
                   test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        tally.add("walk", bad, SECOND, false);
        assert_eq!((tally.passed, tally.failed, tally.ignored, tally.filtered), (8, 1, 1, 2));
        assert_eq!(tally.failures, [("walk".to_owned(), "falls".to_owned())]);
        assert_eq!(tally.suites, [("plumb_x (unit)".to_owned(), SECOND), ("walk".to_owned(), SECOND)]);
    }

    #[test]
    fn a_test_that_passes_alone_is_named_and_no_failure() {
        let mut tally = Tally::default();
        let output = "test falls ... FAILED\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n";
        tally.add("walk", output, SECOND, false);
        tally.passes_alone("walk", "walks");
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (3, 1, 1));
        tally.passes_alone("walk", "falls");
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (4, 0, 0));
        assert_eq!(tally.unsteady, [("walk".to_owned(), "falls".to_owned())]);
    }

    #[test]
    fn a_suite_that_dies_is_a_failure() {
        let mut tally = Tally::default();
        tally.add("walk", "running 2 tests\ntest walks ... ", SECOND, false);
        tally.add(
            "scan",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            SECOND,
            false,
        );
        let failed: Vec<&str> = tally.failures.iter().map(|(suite, _)| suite.as_str()).collect();
        assert_eq!(failed, ["walk", "scan"]);
    }
}
