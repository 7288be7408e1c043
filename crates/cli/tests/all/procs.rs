//! `plumb procs` and `plumb bench fork` as a user runs them: a command recorded and shown, its exit status, a perf.data,
//! measurements.
//!
//! Needs perf_event_open; without it, a test prints so and is skipped.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a failed expectation is a failed test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// Runs forty programs, ten subshells that never exec, and one subshell with a child of its own.
const SCRIPT: &str = "for i in 0 1 2 3 4 5 6 7 8 9; do /bin/true; /bin/true; /bin/true; /bin/true; (:); done; (/bin/false; :); exit 3";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).env("TMPDIR", folder).output().expect("plumb runs")
}

/// Number of processes that ran a program of this name: forked ones, and those that exec'd.
fn runs(report: &Value, name: &str) -> (u64, u64) {
    let count = |forked: bool| {
        let programs = report["programs"].as_array().expect("there are programs").iter();
        let those = programs.filter(|program| program["comm"] == name && program["forked"] == forked);
        those.filter_map(|program| program["processes"].as_u64()).sum()
    };
    (count(true), count(false))
}

#[test]
fn a_commands_processes_are_counted() {
    if !needs(Requirement::Perf) {
        return;
    }
    let folder = folder("procs");
    let output = plumb(&folder, &["procs", "--json", "--", "bash", "-c", SCRIPT]);
    assert_eq!(output.status.code(), Some(3), "the command's own");
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["processes"], 1 + 40 + 10 + 1 + 1);
    assert_eq!(runs(&report, "true"), (0, 40));
    assert_eq!(runs(&report, "bash"), (11, 1));
    assert_eq!(runs(&report, "false"), (0, 1));
    let left = std::fs::read_dir(&folder).expect("it is there").count();
    assert_eq!(left, 0, "the recording is gone");
}

#[test]
fn a_perf_data_file_tells_the_same() {
    if !needs(Requirement::PerfCommand) {
        return;
    }
    let folder = folder("procs-perf");
    let perf = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock", "-o", "perf.data", "-g", "bash", "-c", SCRIPT])
        .current_dir(&folder)
        .output();
    assert!(folder.join("perf.data").exists(), "{perf:?}");
    let output = plumb(&folder, &["procs", "--json", "perf.data"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(runs(&report, "true"), (0, 40));
    assert_eq!(runs(&report, "bash"), (11, 1));
    assert_eq!(runs(&report, "false"), (0, 1));
}

#[test]
fn what_can_not_be_read_is_said() {
    let folder = folder("procs-none");
    let output = plumb(&folder, &["procs"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("plumb record -- CMD"));
    std::fs::write(folder.join("empty"), "").expect("it can be written");
    let output = plumb(&folder, &["procs", "empty"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("empty"));
}

#[test]
fn starts_are_measured_for_sizes_that_fit() {
    let folder = folder("bench-fork");
    let sizes = ["bench", "fork", "--runs", "3", "--sizes", "0,64,128,9999999999", "--json"];
    let output = plumb(&folder, &sizes);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["left_out_mb"], serde_json::json!([9_999_999_999_u64]));
    assert_eq!(report["sizes"].as_array().map(Vec::len), Some(3));
    for way in ["fork", "vfork", "posix_spawn"] {
        assert!(report["sizes"][1]["ways"][way]["cpu_ms"]["median"].as_f64() > Some(0.0), "{way}");
        assert!(report["cpu_ms_per_mb"][way].is_f64());
    }
    let missing = plumb(&folder, &["bench", "fork", "--sizes", "0", "--program", "/no/such/program"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/program"), "{missing:?}");
}
