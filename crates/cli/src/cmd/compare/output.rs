//! The result as text, Markdown and JSON.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::Verdict;
use serde_json::{Value, json};

use super::figures::{CONFIDENCE, Compared};
use super::profile::Explained;
use super::side::Side;
use super::table::{HEAD, Row, row};
use super::{Args, profile, verdict};
use crate::render::columns::{self, left, right};
use crate::render::markdown::{code, escape};
use crate::terminal::{Output, printable};

/// Rank of each column. A narrow terminal drops columns with the highest rank first.
const RANKS: [u8; 7] = [0, 1, 1, 0, 2, 3, 0];

/// Writes the result as text.
pub(super) fn text(
    compared: &[Compared],
    explained: Option<&Explained<'_, '_>>,
    sides: &[Side; 2],
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    for side in sides {
        writeln!(out, "{}: {}", side.name, command(side))?;
    }
    for line in columns::fold(&how(compared, args), out.width.unwrap_or(usize::MAX), 2) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows: Vec<Row> = compared.iter().map(|one| row(one, args)).collect();
    let head = HEAD.map(str::to_owned);
    let mut widths = [0; HEAD.len()];
    for line in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(columns::width(cell));
        }
    }
    let stay = columns::that_fit(&widths, &RANKS, out.width.unwrap_or(usize::MAX));
    for line in [&head].into_iter().chain(&rows) {
        let mut text = format!("  {}", left(&line[0], widths[0]));
        for ((cell, width), _) in line.iter().zip(widths).zip(&stay).skip(1).filter(|(_, stay)| **stay) {
            text.push_str("  ");
            text.push_str(&right(cell, width));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    not_shown(&HEAD, &stay, out)?;
    if let Some(explained) = explained {
        profile::text(explained, args, out)?;
    }
    let verdict = format!("Verdict: {}", verdict::verdict(compared, args));
    writeln!(out)?;
    for line in columns::fold(&verdict, out.width.unwrap_or(usize::MAX), 2) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Names the columns that do not fit.
pub(super) fn not_shown(titles: &[&str], stay: &[bool], out: &mut Output<'_>) -> Result<()> {
    let line = columns::not_shown(titles, stay).map(|line| format!("  {line}"));
    let lines = line.map(|line| columns::fold(&line, out.width.unwrap_or(usize::MAX), 2));
    Ok(lines.iter().flatten().try_for_each(|line| writeln!(out, "{line}"))?)
}

/// Writes the result as Markdown.
pub(super) fn markdown(
    compared: &[Compared],
    explained: Option<&Explained<'_, '_>>,
    sides: &[Side; 2],
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    for side in sides {
        writeln!(out, "- {}: {}", side.name, code(&command(side)))?;
    }
    writeln!(out, "\n{}\n", how(compared, args))?;
    writeln!(out, "| {} |\n|---|---:|---:|---:|---:|---:|---|", HEAD.join(" | "))?;
    for one in compared {
        writeln!(out, "| {} |", row(one, args).map(|cell| cell.trim().to_owned()).join(" | "))?;
    }
    if let Some(explained) = explained {
        profile::markdown(explained, args, out)?;
    }
    writeln!(out, "\n**Verdict**: {}", escape(&verdict::verdict(compared, args)))?;
    Ok(out.flush()?)
}

/// The result as JSON. Field names are stable.
pub(super) fn json(
    compared: &[Compared],
    explained: Option<&Explained<'_, '_>>,
    sides: &[Side; 2],
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let figures: Vec<Value> = compared.iter().map(figure).collect();
    let sides: Vec<Value> = sides
        .iter()
        .map(|side| json!({"name": side.name, "command": side.text, "environment": side.variables}))
        .collect();
    let verdict = verdict::verdict(compared, args);
    let word = match verdict.split([':', ' ']).next().unwrap_or_default() {
        // The runs show no difference, and are too few to exclude a relevant one.
        "can't" | "no" => "can't tell",
        word => word,
    };
    let document = json!({
        "version": plumb_documents::JSON_VERSION,
        "sides": sides,
        "runs": args.runs,
        "alpha": args.alpha,
        "same_within": args.same,
        "confidence": CONFIDENCE,
        "figures": figures,
        "profile": explained.map(profile::json),
        "verdict": word,
        "says": verdict,
    });
    plumb_documents::json::write_pretty(&document, &mut *out)?;
    Ok(out.flush()?)
}

fn figure(one: &Compared) -> Value {
    let comparison = one.comparison.map(|comparison| {
        json!({
            "ratio": comparison.ratio.value,
            "low": comparison.ratio.low,
            "high": comparison.ratio.high,
            "confidence": comparison.ratio.confidence,
            "p": comparison.p,
            "p_holm": one.p,
            "detectable": comparison.detectable,
            "verdict": match one.verdict {
                Verdict::Less => "less",
                Verdict::More => "more",
                Verdict::Same => "same",
                Verdict::CantTell => "can't tell",
            },
            "better": one.is_better(),
        })
    });
    json!({
        "name": one.name,
        "median": [one.median(0), one.median(1)],
        "values": one.values,
        "comparison": comparison,
    })
}

fn command(side: &Side) -> String {
    let words: Vec<&str> = side.variables.iter().map(String::as_str).chain([&side.text[..]]).collect();
    printable(&words.join(" ")).into_owned()
}

pub(super) fn how(compared: &[Compared], args: &Args) -> String {
    let counts_calls = compared.iter().any(|one| one.name == "calls");
    let warmup = match (args.warmup, counts_calls) {
        (0, _) => "without a warm-up; system calls are counted in warm-ups only".to_owned(),
        (1, true) => "after a warm-up, in which system calls were counted".to_owned(),
        (1, false) => "after a warm-up".to_owned(),
        (times, true) => format!("after {times} warm-ups, in the last of which system calls were counted"),
        (times, false) => format!("after {times} warm-ups"),
    };
    format!(
        "{} runs of each, taking turns, {warmup}; A, B: medians; B / A: median of the ratios of all pairs of runs; \
         p is corrected for multiple comparisons, intervals are not",
        args.runs
    )
}
