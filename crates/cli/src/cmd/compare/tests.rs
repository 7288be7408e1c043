//! Limits, printed numbers, and the words about the runs.

use plumb_analyze::{CommandComparison, ComparedFigure};

use super::*;
use crate::words::parsed;

fn args(words: &[&str]) -> Args {
    parsed("compare", &[words, &["true", "true"]].concat()).expect("they are taken")
}

fn compared(a: &[f64], b: &[f64], args: &Args) -> CommandComparison {
    let wall = ComparedFigure::new("wall_ns", "wall", [a.to_vec(), b.to_vec()]);
    CommandComparison::new(args.runs, args.alpha, args.same, vec![wall])
}

fn runs(middle: f64, spread: f64) -> Vec<f64> {
    (0..10).map(|run| middle * (1.0 + spread * (f64::from(run * 7 % 10) / 10.0 - 0.45))).collect()
}

#[test]
fn a_limit_fails_on_what_is_no_chance() {
    let args = args(&["--fail-on", "wall>3%"]);
    let exceeded = |a: &[f64], b: &[f64]| args.fail_on[0].is_exceeded(&compared(a, b, &args));
    assert!(exceeded(&runs(1e9, 0.02), &runs(1.1e9, 0.02)));
    assert!(!exceeded(&runs(1e9, 0.02), &runs(1.02e9, 0.001)), "no more than 3%");
    assert!(!exceeded(&runs(1e9, 0.9), &runs(1.1e9, 0.9)), "chance");
    assert!(!exceeded(&runs(1.1e9, 0.02), &runs(1e9, 0.02)), "less");
}

#[test]
fn numbers_are_found_in_what_was_printed() {
    let with = |expression: &str| args(&["--metric", expression]);
    let found = metric("x 12,345.5 ops/s\n", &with("([0-9.,]+) ops/s")).expect("it is there");
    assert_eq!(found, 12345.5);
    assert!(metric("nothing", &with("([0-9]+) ops")).is_err());
    assert!(metric("a b ops", &with("(b) ops")).is_err());
    assert!(metric("0 ops", &with("([0-9]+) ops")).is_err());
}

#[test]
fn too_few_runs_are_said_before_the_first() {
    let said = |words: &[&str], has_counters: bool| {
        let args = args(words);
        figures::too_few(&args, has_counters)
    };
    let warning = "4 runs of each are too few for any verdict: use -n ";
    assert_eq!(said(&["-n", "4"], false), Some(format!("{warning}5")));
    // 8 figures: 2 of 252 ways, eight times, is more than 0.05.
    assert_eq!(said(&["-n", "4"], true), Some(format!("{warning}6")));
    assert_eq!(said(&["-n", "5"], false), None);
    assert_eq!(
        said(&["-n", "5", "--alpha", "0.001"], false).as_deref().map(|text| &text[text.len() - 4..]),
        Some("-n 8")
    );
    assert_eq!(said(&[], true), None);
}

#[test]
fn system_calls_are_said_to_be_counted_only_where_they_were() {
    let args = args(&[]);
    let wall = compared(&[1.0, 1.0], &[1.0, 1.0], &args);
    let mut counting = wall.clone();
    counting.figures.push(ComparedFigure::new("calls", "system calls", [vec![1.0], vec![1.0]]));
    let end = "; A, B: medians; B / A: median of the ratios of all pairs of runs; p is corrected for multiple \
               comparisons, intervals are not";
    let counted =
        format!("10 runs of each, taking turns, after a warm-up, in which system calls were counted{end}");
    assert_eq!(output::how(&counting, &args), counted);
    assert_eq!(output::how(&wall, &args), format!("10 runs of each, taking turns, after a warm-up{end}"));
}
