//! Hardware counters: with and without them `plumb record` takes the same samples of CPU time, `-e` samples by them
//! without ever letting the kernel choose the period, and `plumb stat` counts.
//!
//! The counters are simulated (`fixtures`: `pmu`), so that a test means the same on every machine. Needs perf_event_open and a C
//! compiler; without them, a test prints so and is skipped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_fixtures::Pmu;
use plumb_fixtures::{Requirement, needs, skip};
use serde_json::Value;

/// The recorded program, with a fixed amount of work.
const WORK: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 700000 ]; do i=$((i+1)); done"];

/// The test's own directory, and the library to preload.
fn prepare(pmu: Pmu, name: &str) -> Option<(PathBuf, PathBuf)> {
    if !needs(Requirement::Perf) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counters-{name}"));
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    Some((folder, pmu.preload(Path::new(env!("CARGO_TARGET_TMPDIR")))?))
}

/// Runs plumb on a machine with the library's counters.
fn plumb((folder, library): &(PathBuf, PathBuf), arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(arguments)
        .current_dir(folder)
        .env("LD_PRELOAD", library)
        .stdin(Stdio::null())
        .output()
        .expect("plumb runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Records the work; returns plumb's messages, and its report.
fn record(machine: &(PathBuf, PathBuf), options: &[&str]) -> (String, Value) {
    let arguments = [&["record"], options, &["--"], &WORK].concat();
    let output = plumb(machine, &arguments);
    let text = said(&output);
    assert!(output.status.success(), "{:?}: {text}", output.status);
    let report = plumb(machine, &["report", "--json"]);
    let json =
        serde_json::from_slice(&report.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&report)));
    (text, json)
}

/// The name of a report's event.
fn event(report: &Value) -> &str {
    report["reports"][0]["event"].as_str().unwrap_or_else(|| panic!("no event in {report}"))
}

/// Number of samples in the summary's first line, and the CPU time in seconds.
fn counts(text: &str) -> (f64, f64) {
    let number = |before: &str| -> f64 {
        let end = text.find(before).unwrap_or_else(|| panic!("no `{before}` in: {text}"));
        let word = text[..end].split_whitespace().next_back().expect("a number is before it");
        word.parse().unwrap_or_else(|_| panic!("{word} in: {text}"))
    };
    (number(" samples"), number(" s of "))
}

#[test]
fn processor_time_is_sampled_by_the_clock_with_counters_and_without() {
    for (pmu, name) in [(Pmu::Double, "default-double"), (Pmu::Hidden, "default-hidden")] {
        let Some(machine) = prepare(pmu, name) else { return };
        let (_, report) = record(&machine, &[]);
        assert_eq!(event(&report), "cpu-clock", "{pmu:?}");
    }
}

#[test]
fn samples_by_cycles_come_at_the_frequency_that_was_asked_for() {
    let Some(machine) = prepare(Pmu::Double, "cycles") else { return };
    for options in [&["-e", "cycles"][..], &["-e", "cycles", "-F", "499"], &["-e", "cycles:u"]] {
        let (text, report) = record(&machine, options);
        assert_eq!(event(&report), "cycles");
        let (samples, seconds) = counts(&text);
        let hz = if options.contains(&"-F") { 499.0 } else { 999.0 };
        // Samples of user code only are fewer by the kernel's share; late ones of the simulation represent several.
        assert!(samples <= seconds * hz * 1.1 + 10.0, "{options:?}: {text}");
        assert!(samples >= seconds * hz * 0.5, "{options:?}: {text}");
    }
}

#[test]
fn periods_of_other_counters_follow_what_they_count() {
    let Some(machine) = prepare(Pmu::Double, "others") else { return };
    for event in ["instructions", "branches", "branch-misses", "cache-references"] {
        let (text, _) = record(&machine, &["-e", event, "-F", "499"]);
        let (samples, seconds) = counts(&text);
        // Half a second is spent on finding the period, at up to eight times the frequency.
        assert!(samples <= seconds * 499.0 * 1.3 + 499.0 * 4.0, "{event}: {text}");
        assert!(samples >= seconds * 499.0 * 0.2, "{event}: {text}");
    }
}

#[test]
fn a_period_that_is_too_short_is_made_longer_and_that_is_said() {
    let Some(machine) = prepare(Pmu::Double, "storm") else { return };
    let (text, _) = record(&machine, &["-e", "cycles", "-c", "1000"]);
    assert!(text.contains("to spare this machine") && text.contains("-e cpu-clock"), "{text}");
    let (samples, seconds) = counts(&text);
    // The simulation's timer has at most 100,000 a second; within a second there are fewer.
    assert!(samples < 100_000.0 + seconds * 3000.0, "{text}");
    let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    let (text, _) = record(&machine, &["-e", "cycles", "-c", "4000000"]);
    assert!(!text.contains("to spare this machine"), "{text}");
    let after = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    assert_eq!(after, limit);
}

#[test]
fn counters_that_are_not_there_are_named_with_what_works_without() {
    let Some(machine) = prepare(Pmu::Hidden, "hidden") else { return };
    for event in ["cycles", "instructions"] {
        let output = plumb(&machine, &["record", "-e", event, "--", "true"]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(event) && text.contains("plumb record -- CMD"), "{text}");
    }
    let doctor = plumb(&machine, &["doctor"]);
    assert!(
        String::from_utf8_lossy(&doctor.stdout).contains("none: plumb stat shows no cycles"),
        "{doctor:?}"
    );
}

#[test]
fn who_may_not_count_the_kernels_code_sees_what_his_own_takes() {
    let Some((folder, library)) = prepare(Pmu::Double, "stat-nobody") else { return };
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if !paranoid.trim().parse().is_ok_and(|level: i32| level == 2) {
        return skip(Requirement::Unprivileged, format_args!("kernel.perf_event_paranoid is {paranoid}"));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(["stat", "--json", "--"]).args(WORK).current_dir(&folder).env("LD_PRELOAD", library);
    // As user nobody; without root this test already runs as another user.
    if plumb_fixtures::probe::missing(Requirement::Unprivileged).is_some() {
        command.uid(65534).gid(65534);
    }
    let Ok(output) = command.output() else {
        return skip(Requirement::Root, "not root, or others may not run what is built here");
    };
    let result: Value =
        serde_json::from_slice(&output.stderr).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(result["counted_code"], "user", "{result}");
    assert!(result["metrics"]["cycles"]["median"].as_f64().is_some_and(|cycles| cycles > 0.0), "{result}");
}

#[test]
fn stat_shows_cycles_instructions_and_misses_where_there_are_counters() {
    let Some(machine) = prepare(Pmu::Double, "stat") else { return };
    let arguments = [&["stat", "--json", "--"], &WORK[..]].concat();
    let output = plumb(&machine, &arguments);
    let result: Value =
        serde_json::from_slice(&output.stderr).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    let median = |name: &str| {
        result["metrics"][name]["median"].as_f64().unwrap_or_else(|| panic!("no {name} in {result}"))
    };
    // The simulation's cycles for the CPU time.
    let cycles = median("cycles");
    let cpu_cycles = median("cpu_ns") * 2.6;
    assert!((0.9..1.3).contains(&(cycles / cpu_cycles)), "{cycles} of {cpu_cycles}");
    for (name, each) in
        [("instructions", 1.5), ("branches", 0.25), ("branch-misses", 0.005), ("cache-misses", 0.004)]
    {
        let share = median(name) / cycles;
        assert!((0.9..1.1).contains(&(share / each)), "{name}: {share} a cycle");
    }
    let arguments = [&["stat", "--"], &WORK[..]].concat();
    let text = said(&plumb(&machine, &arguments));
    assert_eq!(text.contains("user code only"), result["counted_code"] == "user", "{text}");
    let may_count_all = plumb_fixtures::probe::missing(Requirement::KernelSamples).is_none();
    assert_eq!(result["counted_code"], if may_count_all { "all" } else { "user" });
    for words in ["cycles", "instructions per cycle", "branch misses", "cache misses"] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    let Some(machine) = prepare(Pmu::Hidden, "no-stat") else { return };
    let text = said(&plumb(&machine, &arguments));
    assert!(!text.contains("cycles") && text.contains("user+sys"), "{text}");
}
