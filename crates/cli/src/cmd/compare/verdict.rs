//! The verdict line: faster, slower, the same, or undecided.

use plumb_analyze::Verdict;

use super::Args;
use super::figures::Compared;
use crate::render::change::{LITTLE, percent, with_interval};

/// Figures that decide the verdict if the commands print no metric.
const BY: [&str; 2] = ["wall_ns", "cpu_ns"];
/// Most runs per side that are suggested.
const MOST_RUNS: f64 = 200.0;

/// The verdict on B.
pub(super) fn verdict(compared: &[Compared], args: &Args) -> String {
    let metric: Vec<&Compared> = compared.iter().filter(|one| one.name == "metric").collect();
    let by = match metric.is_empty() {
        true => compared.iter().filter(|one| BY.contains(&one.name)).collect(),
        false => metric,
    };
    let better: Vec<bool> = by.iter().filter_map(|one| one.is_better()).collect();
    let is_decided = !better.is_empty();
    let parts: Vec<String> = by.iter().map(|one| part(one, is_decided)).collect();
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

/// The largest difference within the confidence interval, if that is small.
pub(super) fn no_more_than(one: &Compared, args: &Args) -> Option<f64> {
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

/// A figure and its change; `is_decided`: another figure decides the verdict, so the text says if this one does not.
fn part(one: &Compared, is_decided: bool) -> String {
    let Some(comparison) = one.comparison else { return format!("{}: too little to compare", one.title) };
    let ratio = comparison.ratio;
    let change = with_interval([ratio.value, ratio.low, ratio.high].map(|ratio| ratio - 1.0));
    let remark = match one.verdict {
        Verdict::Same if is_decided => " (same)",
        Verdict::CantTell if is_decided => " (not significant)",
        _ => "",
    };
    format!("{} {change}{remark}", one.title.trim())
}

/// Suggests the number of runs that would make the apparent difference significant.
fn more_runs(by: &[&Compared], args: &Args, figures: usize) -> String {
    if let Some(enough) = enough_runs(figures, args).filter(|&enough| enough > args.runs) {
        return format!(
            "; {} runs of each are too few for any verdict, with {figures} figures: -n {enough}",
            args.runs
        );
    }
    let needed = by.iter().filter(|one| one.verdict == Verdict::CantTell).filter_map(|one| {
        let comparison = one.comparison?;
        let seen = comparison.ratio.value.ln().abs().max(args.same);
        Some(f64::from(args.runs) * (comparison.detectable.ln() / seen).powi(2))
    });
    let needed = needed.fold(0.0, f64::max).ceil();
    let shown = by.iter().filter_map(|one| {
        let least = percent(one.comparison?.detectable - 1.0);
        Some(format!("{least} of {}", one.title.trim()))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    let shown = format!("; these runs would show a change of {}", shown.join(", "));
    shown
        + &match needed {
            needed if needed > MOST_RUNS => {
                format!("; the difference seen here would need more than {MOST_RUNS:.0} runs of each")
            }
            needed if needed > f64::from(args.runs) => {
                format!("; about {needed:.0} runs of each might tell: -n {needed:.0}")
            }
            _ => String::new(),
        }
}

/// A warning before the first run that there are too few runs for any verdict. `least` and `most`: bounds on the number of figures.
pub(super) fn too_few(args: &Args, [least, most]: [usize; 2]) -> Option<String> {
    enough_runs(least, args).filter(|&enough| enough > args.runs)?;
    let enough = enough_runs(most, args)?;
    Some(format!("{} runs of each are too few for any verdict: use -n {enough}", args.runs))
}

/// The smallest number of runs per side that can give a verdict, if all values of one side lie below all of the other.
fn enough_runs(figures: usize, args: &Args) -> Option<u32> {
    (2..=args.runs.max(20)).find(|&runs| least_p(runs) * figures as f64 <= args.alpha)
}

/// The smallest p-value of this number of runs per side: two of all orderings separate the sides completely.
fn least_p(runs: u32) -> f64 {
    let ways: f64 = (1..=runs).map(|k| f64::from(runs + k) / f64::from(k)).product();
    2.0 / ways
}
