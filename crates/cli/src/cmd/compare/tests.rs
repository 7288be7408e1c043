//! Verdicts on two lists of runs.

use plumb_analyze::{Comparison, Verdict};

use super::*;

use super::figures::Compared;
use crate::run_metrics::Unit;
use crate::words::parsed;

fn args(words: &[&str]) -> Args {
    parsed("compare", &[words, &["true", "true"]].concat()).expect("they are taken")
}

fn compared(name: &'static str, a: &[f64], b: &[f64], args: &Args) -> Compared {
    let comparison = Comparison::of(a, b, 0.95);
    let p = comparison.map_or(1.0, |comparison| comparison.p);
    let verdict =
        comparison.map_or(Verdict::CantTell, |comparison| comparison.verdict(p, args.alpha, args.same));
    let title = if name == "wall_ns" { "wall" } else { "user+sys" };
    let values = [a.to_vec(), b.to_vec()];
    Compared { name, title, unit: Unit::Time, more_is_better: false, values, comparison, p, verdict }
}

fn runs(middle: f64, spread: f64) -> Vec<f64> {
    (0..10).map(|run| middle * (1.0 + spread * (f64::from(run * 7 % 10) / 10.0 - 0.45))).collect()
}

#[test]
fn a_verdict_says_what_it_goes_by() {
    let args = args(&[]);
    let said = |wall: (&[f64], &[f64]), cpu: (&[f64], &[f64])| {
        let list = [compared("wall_ns", wall.0, wall.1, &args), compared("cpu_ns", cpu.0, cpu.1, &args)];
        verdict::verdict(&list, &args)
    };
    let (slow, fast, wild) = (runs(1e9, 0.02), runs(8e8, 0.02), runs(1e9, 0.5));
    assert_eq!(
        said((&slow, &fast), (&slow, &fast)),
        "faster: wall -20.0% [-20.5% .. -19.5%]; user+sys -20.0% [-20.5% .. -19.5%]"
    );
    assert!(said((&fast, &slow), (&fast, &slow)).starts_with("slower: wall +25.0%"));
    let partly = said((&wild, &wild), (&slow, &fast));
    assert!(
        partly.starts_with("faster: wall +0.0% [") && partly.contains("] (not significant); user+sys -20.0%"),
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
    let few = said((&slow[..3], &fast[..3]), (&slow[..3], &fast[..3]));
    assert!(few.starts_with("can't tell: "), "{few}");
    let unsure = said((&wild, &wild), (&wild, &wild));
    assert!(unsure.starts_with("can't tell: wall +0.0% ["), "{unsure}");
    assert!(
        unsure.contains("would show a change of ")
            && unsure.contains("; the difference seen here would need more than 200 runs of each"),
        "{unsure}"
    );
}

#[test]
fn a_limit_fails_on_what_is_no_chance() {
    let args = args(&["--fail-on", "wall>3%"]);
    let exceeded = |a: &[f64], b: &[f64]| args.fail_on[0].is_exceeded(&[compared("wall_ns", a, b, &args)]);
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
fn too_few_runs_are_told_apart_from_too_much_noise() {
    let args = args(&["-n", "3"]);
    let (slow, fast) = (runs(1e9, 0.02), runs(8e8, 0.02));
    let list = [
        compared("wall_ns", &slow[..3], &fast[..3], &args),
        compared("cpu_ns", &slow[..3], &fast[..3], &args),
    ];
    let said = verdict::verdict(&list, &args);
    // 2 of 70 ways, twice: 0.057; 2 of 252 ways: 0.016.
    assert!(said.ends_with("; 3 runs of each are too few for any verdict, with 2 figures: -n 5"), "{said}");
}

#[test]
fn too_few_runs_are_said_before_the_first() {
    let said = |words: &[&str], has_counters: bool| {
        let args = args(words);
        verdict::too_few(&args, figures::expected(&args, has_counters))
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
    let wall = compared("wall_ns", &[1.0, 1.0], &[1.0, 1.0], &args);
    let calls = Compared { name: "calls", ..wall.clone() };
    let end = "; A, B: medians; B / A: median of the ratios of all pairs of runs; p is corrected for multiple \
               comparisons, intervals are not";
    let counted =
        format!("10 runs of each, taking turns, after a warm-up, in which system calls were counted{end}");
    assert_eq!(output::how(&[wall.clone(), calls], &args), counted);
    assert_eq!(output::how(&[wall], &args), format!("10 runs of each, taking turns, after a warm-up{end}"));
}
