//! The line that says it: faster, slower, same, or that these runs can't tell.

use plumb_analyze::Verdict;

use super::Args;
use super::figures::Compared;

/// What the verdict goes by, if the commands print no metric.
const BY: [&str; 2] = ["wall_ns", "cpu_ns"];
/// An interval within this, as a part of the value, is said as the most that there can be of a difference.
const LITTLE: f64 = 0.05;
/// Runs of each that are suggested at most.
const MOST_RUNS: f64 = 200.0;

/// The verdict on B.
pub(super) fn verdict(compared: &[Compared], args: &Args) -> String {
    let metric: Vec<&Compared> = compared.iter().filter(|one| one.name == "metric").collect();
    let by = match metric.is_empty() {
        true => compared.iter().filter(|one| BY.contains(&one.name)).collect(),
        false => metric,
    };
    let better: Vec<bool> = by.iter().filter_map(|one| one.is_better()).collect();
    let parts: Vec<String> = by.iter().map(|one| part(one, args)).collect();
    let parts = parts.join("; ");
    match (better.contains(&true), better.contains(&false)) {
        (true, false) => format!("faster: {parts}"),
        (false, true) => format!("slower: {parts}"),
        (true, true) => format!("mixed: {parts}"),
        (false, false) if by.iter().all(|one| one.verdict == Verdict::Same) => {
            format!("same within {}: {parts}", percent(args.same))
        }
        (false, false) if by.iter().all(|one| no_more_than(one, args).is_some()) => {
            let most = by.iter().filter_map(|one| no_more_than(one, args)).fold(0.0, f64::max);
            format!("no difference above {}: {parts}", percent(most))
        }
        (false, false) => format!(
            "can't tell: {parts}{}",
            more_runs(&by, args, compared.iter().filter(|one| one.comparison.is_some()).count())
        ),
    }
}

/// The largest difference that the confidence interval allows, where it is small.
fn no_more_than(one: &Compared, args: &Args) -> Option<f64> {
    match one.verdict {
        Verdict::Same => Some(args.same),
        Verdict::CantTell => {
            let ratio = one.comparison?.ratio;
            let most = (ratio.low - 1.0).abs().max((ratio.high - 1.0).abs());
            (ratio.is_wide_enough() && most <= LITTLE).then_some(most)
        }
        Verdict::Less | Verdict::More => None,
    }
}

fn part(one: &Compared, args: &Args) -> String {
    let Some(comparison) = one.comparison else { return format!("{}: too little to compare", one.title) };
    let ratio = comparison.ratio;
    let change = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let interval = format!("{} [{} .. {}]", change(ratio.value), change(ratio.low), change(ratio.high));
    let title = one.title.trim();
    match one.verdict {
        Verdict::Less | Verdict::More => format!("{title} {interval}"),
        Verdict::Same => format!("{title} same within {}", percent(args.same)),
        Verdict::CantTell if no_more_than(one, args).is_some() => {
            let most = no_more_than(one, args).unwrap_or_default();
            format!("{title} no difference above {} ({interval})", percent(most))
        }
        Verdict::CantTell => format!(
            "{title} can't tell ({interval}; the smallest change that these runs could have shown: {})",
            percent(comparison.detectable - 1.0)
        ),
    }
}

/// How many runs would show what these seem to show.
fn more_runs(by: &[&Compared], args: &Args, figures: usize) -> String {
    // Even if all of one lie below all of the other.
    let enough = (2..=args.runs.max(20)).find(|&runs| least_p(runs) * figures as f64 <= args.alpha);
    if let Some(enough) = enough.filter(|&enough| enough > args.runs) {
        return format!("; {} runs of each never can, with {figures} figures: -n {enough}", args.runs);
    }
    let needed = by.iter().filter(|one| one.verdict == Verdict::CantTell).filter_map(|one| {
        let comparison = one.comparison?;
        let seen = comparison.ratio.value.ln().abs().max(args.same);
        Some(f64::from(args.runs) * (comparison.detectable.ln() / seen).powi(2))
    });
    let needed = needed.fold(0.0, f64::max).ceil();
    match needed {
        needed if needed > MOST_RUNS => format!("; more runs than {MOST_RUNS:.0} of each would be needed"),
        needed if needed > f64::from(args.runs) => {
            format!("; some {needed:.0} runs of each might: -n {needed:.0}")
        }
        _ => String::new(),
    }
}

/// The least p that so many runs of each can have: of all ways to order them two are as far apart.
fn least_p(runs: u32) -> f64 {
    let ways: f64 = (1..=runs).map(|k| f64::from(runs + k) / f64::from(k)).product();
    2.0 / ways
}

/// A share in percent, without zeros that say nothing.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}
