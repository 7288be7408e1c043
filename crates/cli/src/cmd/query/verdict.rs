//! `plumb query verdict`: the largest cause, what to do, and the hottest functions, from the server's document.
//!
//! Elsewhere: all sections, which `plumb explain URL` prints.

use std::io::Write;

use anyhow::Result;
use plumb_documents::advice::RuleJson;
use plumb_documents::explain::{QualityJson, ShareJson, VerdictJson};
use plumb_documents::findings::AnswerBound;
use serde::Deserialize;

use crate::terminal::printable;

/// The members of the server's document that are shown (docs/json.md).
#[derive(Deserialize)]
pub(super) struct Report {
    verdict: VerdictJson,
    functions: Vec<Function>,
    causes: Causes,
    quality: QualityJson,
    /// Missing in the answers of older servers.
    #[serde(default)]
    truncated: Vec<AnswerBound>,
}

#[derive(Deserialize)]
struct Function {
    function: String,
    #[serde(rename = "self")]
    own: ShareJson,
    total: ShareJson,
}

#[derive(Deserialize)]
struct Causes {
    code: Vec<RuleJson>,
    processes: Vec<RuleJson>,
}

/// Prints the verdict, and at most `limit` functions. `url`: the argument with which `plumb explain` reads the same samples.
pub(super) fn show(report: &Report, limit: usize, url: &str, out: &mut impl Write) -> Result<()> {
    let verdict = &report.verdict;
    writeln!(out, "{}", printable(&verdict.headline))?;
    let named = |cause: &&RuleJson| verdict.cause.as_ref().is_some_and(|first| first.name == cause.rule);
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
