//! What all advice says, whatever its rule goes by: what was seen, measured and is to be done.
//!
//! Not here: what the gain is counted in, which is the caller's.

use std::io::{self, Write};

use plumb_analyze::{Measure, Rule};
use serde_json::{Map, Value, json};

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

/// The same for programs; the caller adds what is bounded.
pub fn fields(about: &str, rule: &Rule, measured: &[Measure]) -> Map<String, Value> {
    let measured: Vec<Value> =
        measured.iter().map(|one| json!({"what": one.what, "value": one.value, "unit": one.unit})).collect();
    Map::from_iter([
        ("rule".into(), rule.name.into()),
        ("about".into(), about.into()),
        ("pattern".into(), rule.pattern.into()),
        ("threshold".into(), rule.threshold.into()),
        ("remedy".into(), rule.remedy.into()),
        ("bound".into(), rule.bound.into()),
        ("source".into(), rule.source.into()),
        ("measured".into(), measured.into()),
    ])
}

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
