//! What all advice says to people, whatever its rule goes by: what was seen, measured and is to be done.
//!
//! Not here: what the gain is counted in, which is the caller's; the same for programs (`plumb_report::rule`).

use std::io::{self, Write};

use plumb_analyze::{Measure, Rule};

use crate::render::duration::time;
use crate::terminal::Output;

/// Writes a rule that holds under this title. `gain` is what is bounded.
pub fn write(
    title: &str,
    rule: &Rule,
    measured: &[Measure],
    gain: &str,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let measured: Vec<String> = measured.iter().map(number).collect();
    writeln!(out, "\n{title}")?;
    writeln!(out, "  seen       {}", rule.pattern)?;
    writeln!(out, "  measured   {}", measured.join(", "))?;
    writeln!(out, "  threshold  {}", rule.threshold)?;
    writeln!(out, "  do         {}", rule.remedy)?;
    writeln!(out, "  gain       at most {gain}: {}", rule.bound)?;
    writeln!(out, "  source     {}", rule.source)
}

/// `forks: 12/s`.
pub fn number(measure: &Measure) -> String {
    let Measure { what, value, unit } = measure;
    match *unit {
        "" => format!("{what}: {value:.0}"),
        "ms" => format!("{what}: {}", time(value * 1e6)),
        "%" => format!("{what}: {value:.1}%"),
        unit if unit.starts_with('/') => format!("{what}: {value:.0}{unit}"),
        unit => format!("{what}: {value:.1} {unit}"),
    }
}
