//! Functions of Python programs in recordings, beside what the programs measured themselves.
//!
//! Needs CPython 3.11 (Debian 12's) and BPF. Where either is missing a test says so and does nothing.

mod python;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_fixtures::{Requirement, needs, skip};
use python::{alone, counts, functions, plumb, program, record, spent, text, way};

const PYTHON: &str = "/usr/bin/python3.11";
/// Takes a while, so that the tables are there by which stacks are walked.
const WARM_UP: &str =
    "/usr/bin/python3.11 -c 'import time\nwhile time.thread_time_ns() < 10**9: sum(range(200))'";

/// A folder for a test of this name; `None`, having said why, if Python can't be had.
fn folder(name: &str) -> Option<PathBuf> {
    if !Path::new(PYTHON).exists() {
        skip(Requirement::Python, format_args!("there is no {PYTHON}"));
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    Some(folder)
}

#[test]
fn functions_have_the_shares_that_the_program_measured() {
    let _alone = alone();
    let Some(folder) = folder("shares") else { return };
    for options in [&[][..], &["--timeline"]] {
        let script = format!("{WARM_UP}; exec {PYTHON} {} 0.4", program("shares.py"));
        let Some(printed) = record(&folder, options, &["sh", "-c", &script]) else { return };
        let measured = spent(&printed);
        assert_eq!(measured.len(), 10, "{printed}");
        let functions = functions(&measured);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let folded = text(&plumb(&folder, &["fold"]).stdout);
        for (stack, samples) in counts(&folded) {
            // What is around the way that is measured is the program's too.
            if stack.split(';').any(|name| name == "burn") {
                *found.entry(way(&stack, &functions)).or_default() += samples;
            }
        }
        println!("{found:#?}");
        let strange: Vec<_> = found.keys().filter(|way| !measured.contains_key(*way)).collect();
        assert!(strange.is_empty(), "nothing is called that way: {strange:?}");
        for (way, spent) in &measured {
            spent.hold(way, found.get(way).copied().unwrap_or(0), 0.0, 0.1);
        }
    }
}

/// Code that a program makes itself has no table: its stacks are copied.
#[test]
fn functions_that_call_made_code_are_there() {
    let _alone = alone();
    let Some(folder) = folder("jit") else { return };
    let script = format!("{WARM_UP}; exec {PYTHON} {}", program("jit.py"));
    let Some(printed) = record(&folder, &["--timeline"], &["sh", "-c", &script]) else { return };
    let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
    let of = |name: &str| -> u64 {
        let stacks = folded.iter().filter(|(stack, _)| stack.split(';').any(|function| function == name));
        stacks.map(|(_, samples)| samples).sum()
    };
    println!("{} in spins, {} in its caller", of("spins"), of("calls_spins"));
    for name in ["spins", "calls_spins"] {
        spent(&printed)["spins"].hold(name, of(name), 0.0, 0.1);
    }
}

#[test]
fn functions_that_others_take_the_place_of_keep_their_names() {
    let _alone = alone();
    let Some(folder) = folder("made") else { return };
    let script = format!("{WARM_UP}; exec {PYTHON} {} 60 20000000", program("made.py"));
    let Some(printed) = record(&folder, &[], &["sh", "-c", &script]) else { return };
    let measured = spent(&printed);
    assert_eq!(measured.len(), 60);
    let folded = text(&plumb(&folder, &["fold"]).stdout);
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let folded = counts(&folded);
    for (stack, samples) in &folded {
        let made: Vec<&str> = stack.split(';').filter(|name| name.starts_with("made_")).collect();
        assert!(made.len() <= 1, "none calls another: {stack}");
        made.iter().for_each(|name| *found.entry(name).or_default() += samples);
    }
    println!("{found:?}");
    // 20 samples each, give or take one at either end, and one in case the processor was taken away.
    for (name, spent) in &measured {
        spent.hold(name, found.get(name.as_str()).copied().unwrap_or(0), 3.0, 0.0);
    }
}

#[test]
fn short_processes_have_their_functions_and_an_exec_ends_them() {
    let _alone = alone();
    let Some(folder) = folder("short") else { return };
    // The first processes show which tables are needed, and until these are made there are no functions: where others have the
    // processors, or a quota has run out, for longer. Then once more, so that they are fewer of them.
    let mut seen = [0; 3];
    for processes in [20, 80, 240] {
        let Some(python) = short_processes(&folder, processes) else { return };
        let [known, gone, without] = python;
        println!("of {processes} {known} known, {gone} gone, {without} without");
        assert!(known > 10 * processes, "each takes twenty milliseconds or more: {known}");
        assert!(gone * 50 <= known, "{gone} gone of {known}");
        seen = python;
        if without * 5 <= known {
            break;
        }
    }
    let [known, _, without] = seen;
    assert!(without * 5 <= known, "{known} known, {without} without");
}

/// Records so many short processes, and holds each stack against what can be: samples with functions, without those that are gone, and
/// in the interpreter without any.
fn short_processes(folder: &Path, processes: u64) -> Option<[u64; 3]> {
    let burn = "def inner():\n sum(range(4000000))\ndef outer():\n inner()\nouter()\n";
    // Python becomes a shell: that has no function of it any more.
    let exec = format!(
        "{burn}import os; os.execv(\"/bin/sh\", [\"sh\", \"-c\", \"i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done\"])"
    );
    let script = format!("i=0; while [ $i -lt {processes} ]; do {PYTHON} -c '{exec}'; i=$((i+1)); done");
    std::fs::write(folder.join("script"), script).expect("it can be written");
    record(folder, &[], &["sh", "script"])?;
    let folded = text(&plumb(folder, &["fold"]).stdout);
    let mut python = [0; 3];
    for (stack, samples) in counts(&folded) {
        let names: Vec<&str> = stack.split(';').collect();
        let place = |name: &str| names.iter().position(|other| *other == name);
        if names.first() == Some(&"sh") {
            assert!(place("<module>").is_none() && place("inner").is_none(), "{stack}");
            continue;
        }
        // What adds up numbers is only called from there.
        if place("inner").is_some() {
            assert!(place("<module>") < place("outer") && place("outer") < place("inner"), "{stack}");
            python[0] += samples;
        }
        python[1] += if names.iter().any(|name| name.starts_with("[gone")) { samples } else { 0 };
        python[2] += if place("_PyEval_EvalFrameDefault").is_some() { samples } else { 0 };
    }
    Some(python)
}

#[test]
fn a_report_says_how_python_functions_are_had() {
    let _alone = alone();
    if !needs(Requirement::Perf) {
        return;
    }
    let Some(folder) = folder("hint") else { return };
    let says = |words: &[&str]| {
        let recorded = plumb(&folder, &[&["record", "--capture", "perf", "--"], words].concat());
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        text(&plumb(&folder, &["report"]).stdout).lines().any(|line| line.starts_with("# Python:"))
    };
    assert!(says(&[PYTHON, "-c", "for _ in range(3000000): pass"]));
    assert!(!says(&["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]));
    if record(&folder, &[], &["sh", "-c", WARM_UP]).is_some() {
        assert!(!text(&plumb(&folder, &["report"]).stdout).contains("# Python:"));
    }
}

#[test]
fn threads_without_the_lock_have_their_functions_and_deep_stacks_say_that_they_are_cut() {
    let _alone = alone();
    let Some(folder) = folder("unlocked") else { return };
    let Some(printed) = record(&folder, &[], &[PYTHON, &program("unlocked.py")]) else { return };
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
    for (stack, samples) in &folded {
        let names: Vec<&str> = stack.split(';').collect();
        let count = |name: &str| names.iter().filter(|other| **other == name).count();
        // All that are read are there, up to the innermost, and on the way down the recursion is not that deep yet.
        let is_cut = count("[more frames than are read]");
        assert_eq!(is_cut, usize::from(count("deep") + count("compress") >= 1024), "{stack}");
        if count("compress") == 0 {
            continue;
        }
        assert!(count("deep") == if is_cut > 0 { 1023 } else { 0 }, "{} deep", count("deep"));
        for name in ["one", "other", "deep"] {
            *found.entry(name).or_default() += if count(name) > 0 { *samples } else { 0 };
        }
    }
    let report = text(&plumb(&folder, &["report"]).stdout);
    let stacks = report.lines().find(|line| line.starts_with("# Stacks:")).expect("it is said");
    assert!(!stacks.contains("100% complete") && !stacks.contains("100.0% complete"), "{stacks}");
    for (name, spent) in spent(&printed) {
        spent.hold(&name, found.get(name.as_str()).copied().unwrap_or(0), 0.0, 0.1);
    }
}
