//! Limits for `--fail-on`.

use std::fmt;

use anyhow::{Result, bail};
use plumb_analyze::{Diff, DiffFunction, Per, without_parameters};
use regex_lite::Regex;

use crate::limits;

/// Largest accepted increase of the cost from the base to the new side.
#[derive(Clone, Debug)]
pub struct Limit {
    text: String,
    subject: Subject,
    /// As a fraction of the total cost of the base: 0.03 for 3%.
    by: f64,
}

#[derive(Clone, Debug)]
enum Subject {
    /// The total.
    Total,
    /// The sum over functions with matching names.
    Functions(Regex),
}

/// Reads `total>3%` and `func:parse*>1%`.
pub(super) fn parse(text: &str) -> Result<Limit, String> {
    let (subject, by) = limits::limit(text)?;
    let subject = match subject.strip_prefix("func:") {
        Some(name) if !name.is_empty() => Subject::Functions(pattern(name)?),
        None if subject == "total" => Subject::Total,
        _ => return Err(format!("expected total>3% or func:NAME>1%, not {text:?}")),
    };
    Ok(Limit { text: text.into(), subject, by })
}

/// `/REGEX/`, or a name with `*` as a wildcard.
fn pattern(name: &str) -> Result<Regex, String> {
    let inner =
        name.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
    let expression = match inner {
        Some(inner) => inner.to_owned(),
        None => {
            let parts: Vec<String> = name.split('*').map(regex_lite::escape).collect();
            format!("^{}$", parts.join(".*"))
        }
    };
    Regex::new(&expression).map_err(|error| error.to_string())
}

impl Limit {
    /// Fails if the limit can't be checked.
    pub(super) fn check(&self, diff: &Diff<'_, '_>) -> Result<()> {
        match &self.subject {
            Subject::Total if diff.options.per == Per::Second => {
                bail!("--fail-on {self}: of a second of processor time all is a second")
            }
            Subject::Functions(names) if !diff.has_function(|function| is_called(function, names)) => {
                bail!("--fail-on {self}: no function of either side is called so")
            }
            _ => Ok(()),
        }
    }

    /// Whether the new side costs more than the limit allows, and significantly so.
    pub(super) fn is_exceeded(&self, diff: &Diff<'_, '_>) -> bool {
        let change = match &self.subject {
            Subject::Total => diff.whole,
            Subject::Functions(names) => diff.together(|function| is_called(function, names)),
        };
        // One-sided test: only an increase can exceed the limit.
        change.p / 2.0 <= diff.options.alpha && change.difference() > self.by * diff.whole.value[0]
    }
}

fn is_called(function: &DiffFunction, names: &Regex) -> bool {
    names.is_match(&function.name) || names.is_match(without_parameters(&function.name))
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_with_stars_or_by_an_expression() {
        let matches = |limit: &str, name: &str| match parse(limit).expect("it is a limit").subject {
            Subject::Functions(names) => names.is_match(name),
            Subject::Total => false,
        };
        assert!(matches("func:parse*>1%", "parse_line") && !matches("func:parse*>1%", "reparse"));
        assert!(matches("func:a.b>1%", "a.b") && !matches("func:a.b>1%", "axb"));
        assert!(matches("func:/^p.*e$/ > 1", "parse"));
        assert!(
            parse("total>3%").is_ok_and(|limit| matches!(limit.subject, Subject::Total) && limit.by == 0.03)
        );
        for wrong in ["func:>1%", "wall>3%", "total", "func:/(/>1%"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
