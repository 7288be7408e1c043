//! Functions of PHP programs: in recordings beside what the programs measured themselves, and in `plumb stack` and times off the
//! processor beside what PHP says of its stack.
//!
//! Needs PHP of a known version, built for one thread, and BPF. Where either is missing a test says so and does nothing.

mod python;
mod target;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs, skip};
use python::{alone, counts, plumb, program, record, spent, text, way};
use serde_json::Value;
use target::Target;

/// A folder for a test of this name; `None`, having said why, if PHP can't be had.
fn folder(name: &str) -> Option<PathBuf> {
    let mut php = Command::new("php");
    let said =
        php.args(["-r", "echo PHP_VERSION_ID >= 70400 && PHP_VERSION_ID < 80600 && !PHP_ZTS;"]).output();
    if said.is_ok_and(|output| output.stdout != b"1") || Command::new("php").arg("-v").output().is_err() {
        skip(Requirement::Php, "there is no PHP of a known version for one thread");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("php-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    Some(folder)
}

/// The program when it hangs, and what PHP says of its stack, innermost first: function, file, line.
fn hanging() -> (Target, Vec<(String, String, u64)>) {
    let mut child =
        Command::new("php").arg(program("hangs.php")).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let lines = lines.map(|line| line.expect("it writes text")).take_while(|line| line != "hangs");
    let frame = |line: String| {
        let [name, file, line] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (name.to_owned(), file.to_owned(), line.parse().expect("a number"))
    };
    let said: Vec<_> = lines.map(frame).collect();
    assert_eq!(said.len(), 4, "{said:?}");
    (Target(child), said)
}

#[test]
fn functions_have_the_shares_that_the_program_measured() {
    let _alone = alone();
    let Some(folder) = folder("shares") else { return };
    // Takes a while, so that the tables are there by which stacks are walked.
    let warm_up = "php -r '$until = hrtime(true) + 1e9; while (hrtime(true) < $until);'";
    for options in [&[][..], &["--timeline"]] {
        let script = format!("{warm_up}; exec php {} 0.4", program("shares.php"));
        let Some(printed) = record(&folder, options, &["sh", "-c", &script]) else { return };
        let measured = spent(&printed);
        assert_eq!(measured.len(), 7, "{printed}");
        let mut functions: Vec<&str> = measured.keys().flat_map(|way| way.split(';')).collect();
        functions.sort_unstable();
        functions.dedup();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let folded = text(&plumb(&folder, &["fold"]).stdout);
        for (stack, samples) in counts(&folded) {
            assert!(!stack.contains("[native frames"), "each round is in its place: {stack}");
            *found.entry(way(&stack, &functions)).or_default() += samples;
        }
        println!("{found:#?}");
        for (way, spent) in &measured {
            spent.hold(way, found.get(way).copied().unwrap_or(0), 2.0, 0.1);
        }
        // What C calls is where C calls it.
        let mapped = counts(&folded).into_keys().find(|stack| stack.contains(";maps;"));
        let mapped = mapped.expect("it was sampled");
        let place = |name: &str| mapped.split(';').position(|function| function == name);
        assert!(
            place("maps") < place("zend_call_function") && place("zend_call_function") < place("spin"),
            "{mapped}"
        );
    }
}

#[test]
fn functions_and_lines_are_those_that_php_tells() {
    let Some(folder) = folder("stack") else { return };
    if !needs(Requirement::Ptrace) {
        return;
    }
    let (target, said) = hanging();
    let output = plumb(&folder, &["stack", "--json", "-p", &target.pid()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let process = &all["processes"][0];
    assert!(process["interpreter"].as_str().expect("it is known").starts_with("PHP "));
    let frames = process["threads"][0]["frames"].as_array().expect("there are frames");
    let word = |value: &Value| value.as_str().expect("it is text").to_owned();
    let script = frames.iter().filter(|frame| frame["kind"] == "script");
    let found: Vec<_> = script
        .map(|frame| (word(&frame["symbol"]), word(&frame["file"]), frame["line"].as_u64().expect("a line")))
        .collect();
    assert_eq!(found, said);
}

#[test]
fn functions_that_wait_all_the_time_have_it() {
    let Some(folder) = folder("off-cpu") else { return };
    if !needs(Requirement::Bpf) {
        return;
    }
    let (target, said) = hanging();
    let output = plumb(&folder, &["record", "--off-cpu", "--duration", "1", "-p", &target.pid()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&plumb(&folder, &["report", "--json"]).stdout).expect("JSON");
    let lasted = report["duration_ns"].as_u64().expect("it says how long it took");
    let folded = counts(&text(&plumb(&folder, &["fold", "--event", "off-cpu"]).stdout));
    let functions: Vec<&str> = said.iter().rev().map(|(name, ..)| name.as_str()).collect();
    let off: u64 = folded
        .iter()
        .filter(|(stack, _)| way(stack, &functions) == functions.join(";"))
        .map(|(_, time)| time)
        .sum();
    assert!(off <= lasted && off + lasted / 50 >= lasted, "{off} of {lasted}: {folded:?}");
    assert!(!folded.keys().any(|stack| stack.contains("[native frames")), "{folded:?}");
}
