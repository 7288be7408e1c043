//! The conclusion of a comparison as a sentence.

use plumb_analyze::{CommandComparison, ComparedFigure, Conclusion, Verdict, enough_runs};

use crate::percent::{percent, with_interval};

/// Most runs of each side that are suggested.
const MOST_RUNS: f64 = 200.0;

/// Returns the conclusion with the figures that decide it.
pub fn says(comparison: &CommandComparison) -> String {
    let by = comparison.deciding();
    let is_decided = by.iter().any(|one| one.is_better().is_some());
    let parts: Vec<String> = by.iter().map(|one| part(one, is_decided)).collect();
    let parts = parts.join("; ");
    match comparison.conclusion() {
        Conclusion::Faster => format!("faster: {parts}"),
        Conclusion::Slower => format!("slower: {parts}"),
        Conclusion::Mixed => format!("mixed: {parts}"),
        Conclusion::Same => format!("same within {}: {parts}", percent(comparison.same)),
        Conclusion::AtMost(most) => format!("no difference above {}: {parts}", percent(most)),
        Conclusion::CantTell => format!("can't tell: {parts}{}", more_runs(comparison, &by)),
    }
}

/// A figure and its change; `is_decided`: another figure decides, so the text says if this one does not.
fn part(one: &ComparedFigure, is_decided: bool) -> String {
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
fn more_runs(comparison: &CommandComparison, by: &[&ComparedFigure]) -> String {
    let (runs, figures) = (comparison.runs, comparison.compared());
    if let Some(enough) = enough_runs(figures, runs, comparison.alpha) {
        return format!(
            "; {runs} runs of each are too few for any verdict, with {figures} figures: -n {enough}"
        );
    }
    let least = by.iter().filter_map(|one| {
        Some(format!("{} of {}", percent(one.comparison?.detectable - 1.0), one.title.trim()))
    });
    let least: Vec<String> = least.collect();
    if least.is_empty() {
        return String::new();
    }
    let more = match comparison.needed_runs() {
        needed if needed > MOST_RUNS => {
            format!("; the difference seen here would need more than {MOST_RUNS:.0} runs of each")
        }
        needed if needed > f64::from(runs) => {
            format!("; about {needed:.0} runs of each might tell: -n {needed:.0}")
        }
        _ => String::new(),
    };
    format!("; these runs would show a change of {}{more}", least.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(runs: u32, wall: (&[f64], &[f64]), cpu: (&[f64], &[f64])) -> String {
        let figures = [("wall_ns", "wall", wall), ("cpu_ns", "user+sys", cpu)];
        let figures = figures
            .map(|(name, title, (a, b))| ComparedFigure::new(name, title, [a.to_vec(), b.to_vec()]))
            .into();
        says(&CommandComparison::new(runs, 0.05, 0.01, figures))
    }

    fn runs(middle: f64, spread: f64) -> Vec<f64> {
        (0..10).map(|run| middle * (1.0 + spread * (f64::from(run * 7 % 10) / 10.0 - 0.45))).collect()
    }

    #[test]
    fn a_conclusion_names_the_figures_that_decide() {
        let said = |wall: (&[f64], &[f64]), cpu: (&[f64], &[f64])| compared(10, wall, cpu);
        let (slow, fast, wild) = (runs(1e9, 0.02), runs(8e8, 0.02), runs(1e9, 0.5));
        assert_eq!(
            said((&slow, &fast), (&slow, &fast)),
            "faster: wall -20.0% [-20.5% .. -19.5%]; user+sys -20.0% [-20.5% .. -19.5%]"
        );
        assert!(said((&fast, &slow), (&fast, &slow)).starts_with("slower: wall +25.0%"));
        let partly = said((&wild, &wild), (&slow, &fast));
        assert!(
            partly.starts_with("faster: wall +0.0% [")
                && partly.contains("] (not significant); user+sys -20.0%"),
            "{partly}"
        );
        assert!(said((&slow, &fast), (&fast, &slow)).starts_with("mixed: wall -20.0%"));
        let steady = runs(1e9, 0.004);
        let same = said((&steady, &steady), (&steady, &steady));
        assert!(same.starts_with("same within 1%: wall +0.0% [") && !same.contains('('), "{same}");
        let quiet = runs(1e9, 0.08);
        let little = said((&quiet, &quiet), (&steady, &steady));
        assert!(little.starts_with("no difference above "), "{little}");
        assert!(little.contains(": wall +0.0% [") && !little.contains("tell"), "{little}");
        let unsure = said((&wild, &wild), (&wild, &wild));
        assert!(unsure.starts_with("can't tell: wall +0.0% ["), "{unsure}");
        assert!(
            unsure.contains("would show a change of ")
                && unsure.contains("; the difference seen here would need more than 200 runs of each"),
            "{unsure}"
        );
    }

    #[test]
    fn too_few_runs_are_told_apart_from_too_much_noise() {
        let (slow, fast) = (runs(1e9, 0.02), runs(8e8, 0.02));
        let few = (&slow[..3], &fast[..3]);
        let said = compared(3, few, few);
        assert!(said.starts_with("can't tell: "), "{said}");
        // 2 of 70 ways, twice: 0.057; 2 of 252 ways: 0.016.
        assert!(
            said.ends_with("; 3 runs of each are too few for any verdict, with 2 figures: -n 5"),
            "{said}"
        );
    }
}
