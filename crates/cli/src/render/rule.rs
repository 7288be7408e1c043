//! Text of an advice, common to all rules: evidence, measurements, and what to do.
//!
//! Elsewhere: the unit of the gain, which the caller chooses; measurements in words, and the same as JSON (`plumb_documents::advice`).

use std::io::{self, Write};

use plumb_analyze::{Measure, Rule};
use plumb_documents::advice::number;

use crate::terminal::Output;

/// Writes a matching rule under this title. `gain`: text for the largest possible gain.
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
