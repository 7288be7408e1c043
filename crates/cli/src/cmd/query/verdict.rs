//! `plumb query verdict`: the largest cause, what to do, and the hottest functions, from the server's document.
//!
//! Elsewhere: all sections, which `plumb explain URL` prints.

use std::io::Write;

use anyhow::Result;
use serde::Deserialize;

use crate::terminal::printable;

/// The fields of the server's document that are shown (docs/json.md).
#[derive(Deserialize)]
pub(super) struct Report {
    verdict: Verdict,
    functions: Vec<Function>,
    causes: Causes,
    quality: Quality,
    /// Missing in the answers of older servers.
    #[serde(default)]
    truncated: Vec<Bound>,
}

/// A limit that the server applied to an answer.
#[derive(Deserialize)]
struct Bound {
    says: String,
}

#[derive(Deserialize)]
struct Verdict {
    verdict: String,
    threshold_percent: f64,
    cause: Option<Bottleneck>,
    largest: Option<Bottleneck>,
}

#[derive(Deserialize)]
struct Bottleneck {
    name: String,
    share: Share,
}

#[derive(Deserialize)]
struct Share {
    percent: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Function {
    function: String,
    #[serde(rename = "self")]
    own: Share,
    total: Share,
}

#[derive(Deserialize)]
struct Causes {
    code: Vec<Cause>,
    processes: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    rule: String,
    pattern: String,
    remedy: String,
}

#[derive(Deserialize)]
struct Quality {
    samples: u64,
}

/// Prints the verdict, and at most `limit` functions. `url`: the argument with which `plumb explain` reads the same samples.
pub(super) fn show(report: &Report, limit: usize, url: &str, out: &mut impl Write) -> Result<()> {
    let verdict = &report.verdict;
    let threshold = verdict.threshold_percent;
    let interval =
        |share: &Share| format!("{:.0}% (95% interval {:.0}–{:.0}%)", share.percent, share.low, share.high);
    let headline = match (&*verdict.verdict, &verdict.cause, &verdict.largest) {
        ("go on", Some(cause), _) => format!("{}: {}", printable(&cause.name), interval(&cause.share)),
        ("can't tell", _, Some(largest)) => format!(
            "{}: {}; too few samples to say whether it is above {threshold}%",
            printable(&largest.name),
            interval(&largest.share)
        ),
        _ => format!("Nothing stands out: nothing named is above {threshold}%"),
    };
    writeln!(out, "{headline}")?;
    let named = |cause: &&Cause| verdict.cause.as_ref().is_some_and(|first| first.name == cause.rule);
    let causes = report.causes.code.iter().chain(&report.causes.processes);
    if let Some(cause) = causes.into_iter().find(named) {
        writeln!(out, "evidence  {}\ndo        {}", cause.pattern, cause.remedy)?;
    }
    writeln!(out, "\n{:>7} {:>7}  function", "self", "total")?;
    for one in report.functions.iter().take(limit) {
        let (own, total) = (one.own.percent, one.total.percent);
        writeln!(out, "{own:>6.1}% {total:>6.1}%  {}", printable(&one.function))?;
    }
    writeln!(out, "\ndata  {} samples", report.quality.samples)?;
    report.truncated.iter().try_for_each(|bound| writeln!(out, "note  {}", printable(&bound.says)))?;
    writeln!(out, "more  plumb explain {}", shell_words::quote(url))?;
    Ok(())
}
