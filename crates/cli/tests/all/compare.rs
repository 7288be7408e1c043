//! `plumb compare`: verdicts on programs with a known difference.
//!
//! Needs a C compiler; without it, a test prints so and is skipped.

use crate::spun;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::spun::{plumb, text};
use plumb_fixtures::{Requirement, compiles, needs, needs_command};
use serde_json::Value;

/// A directory with a program that works for a given number of steps.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = spun::folder(&format!("compare-{name}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/compare/spin.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(folder.join("spin")).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    Some(folder)
}

fn figure<'v>(result: &'v Value, name: &str) -> &'v Value {
    let figures = result["figures"].as_array().expect("there are figures");
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {result}"))
}

#[test]
fn half_the_work_is_faster_by_half() {
    let Some(folder) = folder("half") else { return };
    let output = plumb(&folder, &["compare", "-n", "12", "--json", "./spin 10000", "./spin 5000"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(result["verdict"], "faster", "{result}");
    let cpu = &figure(&result, "cpu_ns")["comparison"];
    let ratio = cpu["ratio"].as_f64().expect("a number");
    assert!((0.4..0.62).contains(&ratio), "{cpu}");
    assert!(cpu["low"].as_f64() <= Some(ratio) && cpu["high"].as_f64() >= Some(ratio), "{cpu}");
    assert_eq!(figure(&result, "wall_ns")["values"][1].as_array().map(Vec::len), Some(12));

    let swapped =
        plumb(&folder, &["compare", "-n", "12", "--fail-on", "cpu>3%", "./spin 5000", "./spin 10000"]);
    assert_eq!(swapped.status.code(), Some(4), "{}", text(&swapped.stdout));
    assert!(text(&swapped.stdout).contains("Verdict: slower: "), "{}", text(&swapped.stdout));
    assert!(text(&swapped.stderr).contains("cpu>3%"), "{}", text(&swapped.stderr));
}

#[test]
fn a_number_that_is_printed_decides_where_it_is_asked_for() {
    let Some(folder) = folder("metric") else { return };
    let options = ["compare", "-n", "8", "--json", "--metric", "([0-9]+) steps"];
    let output = plumb(&folder, &[&options[..], &["./spin 100", "./spin 200"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    // Twice the steps, whatever they cost.
    assert_eq!(result["verdict"], "faster", "{result}");
    let metric = figure(&result, "metric");
    assert_eq!(metric["median"], serde_json::json!([100_000.0, 200_000.0]));
    assert_eq!(metric["comparison"]["ratio"], 2.0);
}

#[test]
fn commands_that_fail_are_no_measurement() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = plumb(folder, &["compare", "-n", "2", "true", "sh -c 'exit 3'"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("B failed with status 3: sh -c 'exit 3'"),
        "{}",
        text(&output.stderr)
    );
    let output = plumb(folder, &["compare", "-n", "2", "--ignore-failure", "true", "sh -c 'exit 3'"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Verdict: can't tell: "), "{}", text(&output.stdout));
    let output = plumb(folder, &["compare", "true", "no-such-command-anywhere"]);
    assert!(text(&output.stderr).contains("no-such-command-anywhere: command not found"), "{output:?}");
}

/// A variable takes effect on its side.
#[test]
fn variables_are_set_on_their_side() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let options = ["compare", "-n", "2", "--env", "B:N=40", "--metric", "([0-9]+) is N", "--json"];
    let command = "echo ${N:-10} is N";
    let output = plumb(folder, &[&options[..], &[command, command]].concat());
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(figure(&result, "metric")["values"], serde_json::json!([[10.0, 10.0], [40.0, 40.0]]));
}

/// Runs an example of the repository with few and short runs.
fn example(name: &str, sizes: (&str, &str), arguments: &[&str]) -> Option<Value> {
    if !needs(Requirement::Cc) || !needs(Requirement::Perf) || !needs_command(Requirement::Tools, "bash") {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let mut command = Command::new(script);
    command.env("PLUMB", env!("CARGO_BIN_EXE_plumb")).env(sizes.0, sizes.1).stdin(Stdio::null());
    let output = command.args(["-n", "5", "--json"]).args(arguments).output().expect("there is a shell");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

#[test]
fn a_shell_that_does_it_itself_is_faster_than_a_thousand_programs() {
    let Some(result) = example("dirname.sh", ("PATHS", "100"), &["--profile"]) else { return };
    assert_eq!(result["verdict"], "faster", "{result}");
    let faults = &figure(&result, "minor_faults")["comparison"];
    assert!(faults["ratio"].as_f64() < Some(0.2) && faults["better"] == true, "{faults}");
    assert!(result["profile"]["all"]["mark"] == "less", "{result}");
    if !spun::sees_kernel() {
        return;
    }
    // The eliminated time is the kernel's work for starting and ending the processes.
    let rows = result["profile"]["causes"].as_array().expect("there are rows");
    let exec = rows.iter().find(|row| row["cause"] == "exec").unwrap_or_else(|| panic!("{result}"));
    assert!(exec["difference"].as_f64() < Some(0.0), "{exec}");
}

#[test]
fn an_allocator_that_keeps_memory_is_faster_and_the_kernel_has_less_to_do() {
    let Some(result) = example("allocator.sh", ("ROUNDS", "60"), &[]) else { return };
    assert_eq!(result["verdict"], "faster", "{result}");
    let faults = &figure(&result, "minor_faults")["comparison"];
    assert!(faults["ratio"].as_f64() < Some(0.3), "{faults}");
}
