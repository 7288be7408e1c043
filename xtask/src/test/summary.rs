//! The summary at the end of `make test`.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::time::Duration;

use super::lines::Tally;

/// How many of the slowest suites are named.
const SLOWEST: usize = 10;

/// Writes the summary of what ran, with the lines that `skip` of the crate `fixtures` wrote. The last line is as cargo's of a suite.
pub fn write(out: &mut impl Write, tally: &Tally, skips: &str, took: Duration, is_good: bool) -> Result<()> {
    writeln!(out, "\n== Summary")?;
    let mut slowest: Vec<_> = tally.suites.iter().collect();
    slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    writeln!(out, "{} suites in {:.0} s; the slowest:", tally.suites.len(), took.as_secs_f64())?;
    for (name, time) in slowest.into_iter().take(SLOWEST) {
        writeln!(out, "  {:>6.1} s  {name}", time.as_secs_f64())?;
    }
    write_skips(out, skips)?;
    for (suite, test) in &tally.unsteady {
        writeln!(out, "UNSTEADY  {suite}: {test} (failed at first, passed when it was repeated alone)")?;
    }
    for (suite, test) in &tally.failures {
        writeln!(out, "FAILED  {suite}: {test}")?;
    }
    writeln!(
        out,
        "\ntest result: {}. {} passed; {} failed; {} ignored; {} measured; {} filtered out; finished in {:.2}s",
        if is_good { "ok" } else { "FAILED" },
        tally.passed,
        tally.failed,
        tally.ignored,
        tally.measured,
        tally.filtered,
        took.as_secs_f64(),
    )
}

/// By requirement: how many tests skipped something, and why.
fn write_skips(out: &mut impl Write, skips: &str) -> Result<()> {
    let mut tests = std::collections::BTreeSet::new();
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in skips.lines() {
        let mut fields = line.splitn(4, '\t');
        let [requirement, test, place, why] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        tests.insert((test, place));
        *reasons.entry((requirement, why)).or_default() += 1;
    }
    writeln!(out, "{} tests skipped something", tests.len())?;
    for ((requirement, why), count) in reasons {
        writeln!(out, "  {count:>6} x  {requirement}: {why}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(tally: &Tally, skips: &str, is_good: bool) -> String {
        let mut out = Vec::new();
        write(&mut out, tally, skips, Duration::from_secs(3), is_good).expect("memory takes it");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn the_last_line_is_the_sum() {
        let tally = Tally { passed: 7, ignored: 1, ..Tally::default() };
        let text = summary(&tally, "", true);
        let last = text.lines().next_back().expect("there are lines");
        assert!(last.starts_with("test result: ok. 7 passed; 0 failed; 1 ignored;"), "{last}");
    }

    #[test]
    fn failures_and_skips_are_named() {
        let failures = vec![("walk".to_owned(), "falls".to_owned())];
        let unsteady = vec![("record".to_owned(), "waits".to_owned())];
        let tally = Tally { failed: 1, failures, unsteady, ..Tally::default() };
        let text = summary(&tally, "gdb\ta\tx.rs:1\tno gdb\ngdb\tb\tx.rs:1\tno gdb\n", false);
        assert!(text.contains("2 tests skipped something") && text.contains("2 x  gdb: no gdb"), "{text}");
        assert!(text.contains("UNSTEADY  record: waits"), "{text}");
        assert!(
            text.contains("FAILED  walk: falls") && text.contains("test result: FAILED. 0 passed; 1 failed")
        );
    }
}
