//! A selection has one set of sums: its samples, their weight and the sums of its rows are equal in every output, and no figure of the
//! whole recording stands beside them.
//!
//! The truth is the list of samples that `plumb script` prints of the whole recording, counted here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// A sample as printed by `plumb script`.
struct Sample {
    comm: String,
    tid: u64,
    weight: u64,
    event: String,
    functions: Vec<String>,
}

/// A recording of the program, with the samples of both events.
fn recording(name: &str) -> Option<PathBuf> {
    if !needs(Requirement::Perf) || !needs(Requirement::Cc) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("selections-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/selected.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-pthread", "-o"]).arg(folder.join("selected")).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    let events = ["-e", "cpu-clock", "-e", "page-faults", "--timeline"];
    said(&folder, &[&["record", "-q", "-o", "all.plumb"], &events[..], &["--", "./selected"]].concat());
    Some(folder)
}

/// Returns a command's output.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output =
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let text = said(folder, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

fn samples(folder: &Path) -> Vec<Sample> {
    let text = said(folder, &["script", "all.plumb"]);
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with(char::is_whitespace) {
            let name = words[1].split('+').next().unwrap_or_default();
            samples.last_mut().expect("a stack follows its sample").functions.push(name.to_owned());
            continue;
        }
        let [comm, tid, _, _, weight, event, ..] = words[..] else { panic!("{line}") };
        samples.push(Sample {
            comm: comm.to_owned(),
            tid: tid.parse().expect("a thread id"),
            weight: weight.parse().expect("a weight"),
            event: event.trim_end_matches(':').to_owned(),
            functions: Vec::new(),
        });
    }
    samples
}

/// The words of a command with the options that select.
fn with<'a>(words: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    [words, options].concat()
}

/// The sum of a member over a list.
fn sum(list: &Value, member: &str) -> u64 {
    list.as_array().into_iter().flatten().filter_map(|one| one[member].as_u64()).sum()
}

/// The sums that every output has to have: of samples and of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums(u64, u64);

impl Sums {
    fn of<'s>(samples: impl Iterator<Item = &'s Sample>) -> Self {
        samples.fold(Self(0, 0), |sums, sample| Self(sums.0 + 1, sums.1 + sample.weight))
    }
}

/// Holds all outputs of a selection to its sums. `options` select; they name an event.
fn hold(folder: &Path, options: &[&str], wanted: Sums) {
    let report = json(folder, &with(&["report", "all.plumb", "--sort", "tid,sym"], options));
    let one = &report["reports"][0];
    let kept = |one: &Value| {
        Sums(one["kept_samples"].as_u64().expect("a number"), one["kept_weight"].as_u64().expect("a number"))
    };
    let rows = Sums(sum(&one["rows"], "self_samples"), sum(&one["rows"], "self_weight"));
    assert_eq!([kept(one), rows], [wanted; 2], "report --json {options:?}");
    let whole = [&report["target_cpu_ns"], &one["coverage_percent"], &one["idle_percent"]];
    assert!(whole.iter().all(|figure| figure.is_null()), "{options:?}: {whole:?}");

    let text = said(folder, &with(&["report", "all.plumb"], options));
    assert!(text.contains(&format!(" {} ", wanted.0)), "{options:?}: {} in {text}", wanted.0);
    assert!(!text.contains("of the target's CPU time"), "{options:?}: {text}");
    let table = said(folder, &with(&["report", "all.plumb", "--csv", "--sort", "tid"], options));
    let cells = table.lines().skip(1).filter_map(|line| line.split(',').nth(6)?.parse::<u64>().ok());
    assert_eq!(cells.sum::<u64>(), wanted.0, "report --csv {options:?}: {table}");

    let procs = json(folder, &with(&["procs", "all.plumb"], options));
    let head =
        Sums(procs["samples"].as_u64().expect("a number"), procs["weight"].as_u64().expect("a number"));
    let programs = Sums(sum(&procs["programs"], "self_samples"), sum(&procs["programs"], "self_weight"));
    assert_eq!([head, programs], [wanted; 2], "procs {options:?}");

    let folded = said(folder, &with(&["fold", "all.plumb", "--weights"], options));
    let weights = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(weights.sum::<u64>(), wanted.1, "fold {options:?}");
    said(folder, &with(&["export", "all.plumb", "-o", "part.pb.gz"], options));
    let exported = json(folder, &["report", "part.pb.gz"]);
    assert_eq!(kept(&exported["reports"][0]).1, wanted.1, "export {options:?}");
    assert_eq!(exported["duration_ns"], report["duration_ns"], "export {options:?}");
    let diff = json(folder, &with(&["diff", "all.plumb", "all.plumb"], options));
    assert_eq!(diff["all"]["samples"], serde_json::json!([wanted.0, wanted.0]), "diff {options:?}");
}

/// The commands that are about processor time.
fn hold_time(folder: &Path, options: &[&str], wanted: Sums) {
    let kernel = json(folder, &with(&["kernel", "all.plumb"], options));
    let head =
        Sums(kernel["samples"].as_u64().expect("a number"), kernel["total_ns"].as_u64().expect("a number"));
    let rows = Sums(sum(&kernel["rows"], "samples"), sum(&kernel["rows"], "cpu_ns"));
    assert_eq!([head, rows], [wanted; 2], "kernel {options:?}");
    assert!(kernel["rusage_ns"].is_null() && kernel["off_percent"].is_null(), "{options:?}: {kernel}");
    hold_explained(folder, options, wanted);
}

fn hold_explained(folder: &Path, options: &[&str], wanted: Sums) {
    let explained = json(folder, &with(&["explain", "all.plumb"], options));
    assert_eq!(explained["quality"]["samples"], wanted.0, "explain {options:?}");
    assert_eq!(explained["time"]["cpu_ns"], wanted.1, "explain {options:?}");
    let rows = explained["split"]["rows"].as_array().into_iter().flatten();
    let samples = rows.filter_map(|row| row["cost"]["samples"].as_u64()).sum::<u64>();
    assert_eq!(samples, wanted.0, "explain {options:?}");
    assert!(explained["quality"]["coverage_percent"].is_null(), "{options:?}");
}

#[test]
fn heads_rows_and_totals_are_of_one_selection() {
    let Some(folder) = recording("parts") else { return };
    let all = samples(&folder);
    let worker = all.iter().find(|sample| sample.comm == "worker").expect("the thread is sampled").tid;
    let tid = worker.to_string();
    type Keeps<'a> = Box<dyn Fn(&Sample) -> bool + 'a>;
    let selections: [(&[&str], Keeps<'_>); 3] = [
        (&["--comm", "worker"], Box::new(|sample| sample.comm == "worker")),
        (&["--tid", &tid], Box::new(|sample| sample.tid == worker)),
        (&["--focus", "^second$"], Box::new(|sample| sample.functions.iter().any(|name| name == "second"))),
    ];
    for (options, keeps) in &selections {
        for event in ["cpu-clock", "page-faults"] {
            let wanted = Sums::of(all.iter().filter(|sample| sample.event == event && keeps(sample)));
            let options = [options, &["--event", event][..]].concat();
            if wanted.0 == 0 {
                continue;
            }
            hold(&folder, &options, wanted);
            if event == "cpu-clock" {
                // These take the clock by themselves.
                hold_time(&folder, &options[..options.len() - 2], wanted);
            }
        }
    }
}

#[test]
fn times_divide_a_recording() {
    let Some(folder) = recording("times") else { return };
    let all = samples(&folder);
    let wanted = Sums::of(all.iter().filter(|sample| sample.event == "cpu-clock"));
    let seconds =
        json(&folder, &["report", "all.plumb"])["duration_ns"].as_u64().expect("a number") as f64 / 1e9;
    let half = format!("{:.3}", seconds / 2.0);
    let parts = [format!("-{half}"), format!("{half}-")].map(|time| {
        let options = ["--time", &time, "--event", "cpu-clock"];
        let report = json(&folder, &with(&["report", "all.plumb"], &options));
        let one = &report["reports"][0];
        let part = Sums(
            one["kept_samples"].as_u64().expect("a number"),
            one["kept_weight"].as_u64().expect("a number"),
        );
        let length = report["duration_ns"].as_u64().expect("a number") as f64 / 1e9;
        assert!((length - seconds / 2.0).abs() < 0.002, "{time}: {length} of {seconds}");
        hold(&folder, &options, part);
        hold_time(&folder, &["--time", &time], part);
        part
    });
    assert!(parts.iter().all(|part| part.0 > 0), "{parts:?}");
    assert_eq!((parts[0].0 + parts[1].0, parts[0].1 + parts[1].1), (wanted.0, wanted.1));
}
