//! Functions of Python programs in recordings, beside what the programs measured themselves.
//!
//! Needs CPython 3.11 (Debian 12's) and BPF. Where either is missing a test says so and does nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PYTHON: &str = "/usr/bin/python3.11";

/// A folder for a test of this name; `None`, having said why, if Python can't be had.
fn folder(name: &str) -> Option<PathBuf> {
    if !Path::new(PYTHON).exists() {
        eprintln!("skipped: there is no {PYTHON}");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    Some(folder)
}

fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.output().expect("plumb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn program(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).to_string_lossy().into_owned()
}

/// Records a program with stacks walked in the kernel. What it printed; `None`, having said why, if that can't be done.
fn record(folder: &Path, options: &[&str], words: &[&str]) -> Option<String> {
    let output = plumb(folder, &[&["record", "--capture", "bpf"], options, &["--"], words].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    if said.contains("not walked in the kernel") {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(text(&output.stdout))
}

/// Lines with a number at the end, summed up by what is before it.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (way, count) = line.rsplit_once(' ').expect("a number is at the end");
        *counts.entry(way.to_owned()).or_default() += count.parse::<u64>().expect("it is a number");
    }
    counts
}

/// The functions of the program in a folded stack, from the outermost of `ways` to the innermost.
fn way(stack: &str, functions: &[&str]) -> String {
    stack.split(';').filter(|name| functions.contains(name)).collect::<Vec<_>>().join(";")
}

#[test]
fn functions_have_the_shares_that_the_program_measured() {
    let Some(folder) = folder("shares") else { return };
    for options in [&[][..], &["--timeline"]] {
        let words = [PYTHON, &program("shares.py"), "0.4"];
        let Some(printed) = record(&folder, options, &words) else { return };
        let measured = counts(&printed);
        assert_eq!(measured.len(), 10, "{printed}");
        let mut functions: Vec<&str> = measured.keys().flat_map(|way| way.split(';')).collect();
        functions.sort_unstable();
        functions.dedup();
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
        for (way, nanoseconds) in &measured {
            let expected = *nanoseconds as f64 * 999.0 / 1e9;
            let samples = found.get(way).copied().unwrap_or(0) as f64;
            assert!((samples - expected).abs() < expected * 0.1, "{way}: {samples} of {expected}");
        }
    }
}
