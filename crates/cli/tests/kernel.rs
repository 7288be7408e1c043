//! `plumb kernel` on programs that measure themselves: its figures equal theirs, and the sum equals the kernel's accounting.
//!
//! Needs root and BPF; without access to system call numbers, a test prints so and is skipped.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a failed expectation is a failed test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// One at a time: they compare times, and two CPUs can't handle more.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test's own directory with one of the programs of bench/kernel; `None`, after saying why, without BPF.
fn program(name: &str) -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    built(name, "../../bench/kernel")
}

/// As [`program`], with a program of another directory.
fn built(name: &str, from: &str) -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    if !needs(Requirement::Bpf) || !needs(Requirement::Cc) {
        return None;
    }
    let alone = alone();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(from).join(format!("{name}.c"));
    let built = Command::new("cc")
        .args(["-O2", "-pthread", "-w", "-o"])
        .arg(folder.join(name))
        .arg(source)
        .status()
        .expect("cc is there");
    assert!(built.success(), "{name} compiles");
    Some((folder, alone))
}

fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).env("TMPDIR", folder).env("TRUTH", folder.join("truth"));
    // Cargo sets it to directories that the loader would search first.
    command.env_remove("LD_LIBRARY_PATH");
    command.output().expect("plumb runs")
}

/// plumb's report on a command, and the command's own figures.
fn measured(folder: &Path, options: &[&str], command: &[&str]) -> (Value, Value) {
    let output = plumb(folder, &[&["kernel", "--json"], options, &["--"], command].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout);
    let truth = std::fs::read(folder.join("truth")).expect("the program measures itself");
    (report.unwrap_or_else(|error| panic!("{error}: {said}")), serde_json::from_slice(&truth).expect("JSON"))
}

/// CPU time of a row, in seconds.
fn row(report: &Value, name: &str) -> f64 {
    let rows = report["rows"].as_array().expect("there are rows").iter();
    let row = rows.into_iter().find(|row| row["name"] == name);
    row.map_or(0.0, |row| row["cpu_ns"].as_u64().expect("a number") as f64 / 1e9)
}

fn total(report: &Value) -> f64 {
    report["total_ns"].as_u64().expect("a number") as f64 / 1e9
}

/// Seconds in phases of the program, by its own clock: wall time, which is CPU time unless others ran.
fn truth(truth: &Value, phases: &[&str]) -> f64 {
    phases.iter().map(|phase| truth["phases"][phase]["s"].as_f64().expect("a phase")).sum()
}

/// The rows are complete, and their sum equals the kernel's accounting.
fn check_sum(report: &Value) {
    let rows = report["rows"].as_array().expect("there are rows").iter();
    let sum: u64 = rows.filter_map(|row| row["cpu_ns"].as_u64()).sum();
    assert_eq!(sum, report["total_ns"], "closed");
    let off = report["off_percent"].as_f64().expect("it is known");
    // The difference is larger if the host takes CPU time from this machine while a timer is due.
    assert!(off.abs() <= 8.0, "{off}% off");
}

#[test]
fn page_faults_and_exit_are_told_from_system_calls() {
    let Some((folder, _alone)) = program("brkmem") else { return };
    let (report, own) = measured(&folder, &["-o", "kept.plumb"], &["./brkmem", "1000", "1"]);
    check_sum(&report);
    let touched = truth(&own, &["touch_pages(faults)", "touch_kept(faults)"]);
    let calls = truth(&own, &["brk_up", "brk_down", "mmap", "munmap"]);
    let share = |seconds: f64| seconds / (total(&report) - row(&report, "exit"));
    let faults = share(row(&report, "page-fault"));
    // Part of the cost of touching memory is in the program, which does little else.
    let most = faults + share(row(&report, "user"));
    let expected = touched / (touched + calls);
    println!("faults {faults:.3} to {most:.3}, touching pages {expected:.3}: {report}");
    assert!(faults - 0.08 < expected && expected < most + 0.08, "{faults} {most} {expected}");
    assert!(row(&report, "brk") > 0.0 && row(&report, "munmap") > 0.0 && row(&report, "exit") > 0.0);
    // The recording is like any other, and gives the same figures again.
    let kept = plumb(&folder, &["report", "--json", "kept.plumb"]);
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let again = plumb(&folder, &["kernel", "--json", "kept.plumb"]);
    let again: Value = serde_json::from_slice(&again.stdout).expect("it is JSON");
    assert_eq!(again["rows"], report["rows"]);
}

#[test]
fn waiting_costs_the_one_who_works_not_the_one_who_waits() {
    let Some((folder, _alone)) = program("twothreads") else { return };
    let (report, own) = measured(&folder, &[], &["./twothreads", "64", "8"]);
    check_sum(&report);
    let sleep = row(&report, "clock_nanosleep") + row(&report, "nanosleep");
    println!("{report}");
    assert!(truth(&own, &["nanosleep(main)"]) > 0.1, "it slept for most of its life");
    assert!(sleep < 0.05 * total(&report), "{sleep} s of {}", total(&report));
    assert!(row(&report, "page-fault") > 0.5 * total(&report));
}

#[test]
fn a_call_costs_what_it_costs_whatever_user_code_runs_beside() {
    let Some((folder, _alone)) = program("mixed") else { return };
    for user in ["100", "1500"] {
        let (report, own) = measured(&folder, &[], &["./mixed", "1200", user]);
        check_sum(&report);
        // Compared as shares: other processes lengthen all of it by the program's own clock.
        let wall = own["wall"].as_f64().expect("it is known");
        let (pread, expected) = (row(&report, "pread64") / total(&report), truth(&own, &["pread64"]) / wall);
        println!("{pread} of {expected}");
        assert!((0.7..1.3).contains(&(pread / expected)), "{pread}, by its own clock {expected}");
    }
}

#[test]
fn the_shortest_call_is_seen_with_its_way_in_and_out() {
    let Some((folder, _alone)) = program("getppid") else { return };
    let (report, _) = measured(&folder, &[], &["./getppid", "3000000"]);
    check_sum(&report);
    let (call, user) = (row(&report, "getppid"), row(&report, "user"));
    println!("{call} {user}");
    // The program does nothing else. Samples before the tables are loaded have no call number.
    assert!(call + user > 0.93 * total(&report), "{call} {user}: {report}");
    // The kernel leaves with interrupts off. A timer that ends then is seen at the program's next instruction, which takes a third
    // to a half of so short a call.
    assert!(call > 0.35 * total(&report), "{call} {user}: {report}");
}

#[test]
fn short_processes_are_all_there() {
    let Some((folder, _alone)) = program("forkexec") else { return };
    let (report, _) = measured(&folder, &[], &["./forkexec", "800"]);
    check_sum(&report);
    println!("{report}");
    // The least of them, fork, takes 2 to 3% of the time.
    for name in ["user", "fork", "exec", "exit", "page-fault"] {
        assert!(row(&report, name) > 0.005 * total(&report), "{name}");
    }
    assert!(row(&report, "wait4") < 0.05 * total(&report));
}

#[test]
fn a_command_keeps_its_exit_code_and_csv_has_every_row() {
    let Some((folder, _alone)) = program("getppid") else { return };
    let output =
        plumb(&folder, &["kernel", "--csv", "--", "sh", "-c", "./getppid 200000 2>/dev/null; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("name,cause,cpu_ns,samples,percent,calls,errors,wall_ns\n"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("getppid,syscall,")), "{text}");
}

/// The report of `plumb kernel` with these options on the program [`counted.c`](programs/counted.c).
fn counted(folder: &Path, options: &[&str]) -> Value {
    let output = plumb(folder, &[&["kernel", "--json"], options, &["--", "./counted"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(9), "{said}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut all = list.as_array().expect("a list").iter();
    all.find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {list}"))
}

#[test]
fn each_call_is_counted_with_its_error_and_bytes() {
    let Some((folder, _alone)) = built("counted", "tests/programs") else { return };
    for options in [
        &["--calls"][..],
        &["--latency"],
        &["--calls", "--per", "process"],
        &["--latency", "--per", "thread"],
    ] {
        let report = counted(&folder, options);
        let calls = &report["calls"];
        assert_eq!(named(calls, "getppid")["calls"], 1000 + 5 * 100, "{options:?}");
        assert_eq!(named(calls, "getuid")["calls"], 50, "{options:?}");
        assert_eq!(named(calls, "wait4")["calls"], 5, "{options:?}");
        assert_eq!(named(calls, "clone")["calls"], 5, "{options:?}: a child returns too, and never called");
        assert_eq!(named(calls, "execve")["calls"], 1, "{options:?}");
        assert_eq!(named(calls, "openat")["errors_by_name"]["ENOENT"], 7, "{options:?}");
        assert_eq!(
            (&named(calls, "write")["calls"], &named(calls, "write")["bytes"]),
            (&3.into(), &30.into())
        );
        assert_eq!(named(calls, "getppid")["bytes"], Value::Null, "a process is no number of bytes");
        let rows = &report["rows"];
        assert_eq!(named(rows, "getppid")["calls"], 1500);
        assert_eq!(named(rows, "openat")["errors"], 7);
        // The parent's call for the thread, whichever the C library uses.
        assert_eq!(named(rows, "fork")["calls"], 6);
        assert_eq!(named(rows, "exit")["calls"], 1 + 5 + 1);
        assert_eq!(report["events"]["ended_threads"], 7);
        let faults = report["events"]["minor_faults"].as_u64().expect("a number");
        assert!((4096..6000).contains(&faults), "{faults}");
        assert!(report["events"]["voluntary_switches"].as_u64() >= Some(3), "it slept three times");
        assert_eq!(report["events"]["lost_calls"], 0);
    }
}

#[test]
fn calls_are_measured_on_the_processor_and_off_it() {
    let Some((folder, _alone)) = built("counted", "tests/programs") else { return };
    let report = counted(&folder, &["--latency"]);
    let sleep = named(&report["calls"], "nanosleep");
    let ms = |what: &str| sleep[what].as_f64().expect("a number") / 1e6;
    println!("{sleep}");
    assert!(ms("wall_ns") >= 60.0 && ms("blocked_ns") >= 60.0, "three times 20 ms");
    assert!(ms("on_cpu_ns") < 6.0, "sleeping takes no processor");
    let sum = ms("on_cpu_ns") + ms("blocked_ns") + ms("preempted_ns") + ms("queued_ns");
    assert!((sum - ms("wall_ns")).abs() < 0.001, "{sum}");
    assert!(ms("p50_ns") >= 16.0 && ms("max_ns") >= 20.0 && ms("p50_ns") <= ms("max_ns"));
    let histogram = sleep["histogram"].as_array().expect("a histogram").iter();
    assert_eq!(histogram.filter_map(|bucket| bucket["calls"].as_u64()).sum::<u64>(), 3);
    assert_eq!(named(&report["rows"], "nanosleep")["wall_ns"], sleep["wall_ns"]);
    let open = &named(&report["calls"], "openat")["longest"];
    assert!(open["path"].as_str().is_some_and(|path| path.starts_with('/')), "{open}");
    let tax = &report["tax"];
    assert!(tax["each_counted_call_ns"].as_f64() > Some(10.0), "{tax}");
}

#[test]
fn calls_of_threads_and_processes_are_told_apart() {
    let Some((folder, _alone)) = built("counted", "tests/programs") else { return };
    let of = |per: &str| {
        let report = counted(&folder, &["--calls", "--per", per]);
        let groups = report["groups"].as_array().expect("there are groups").clone();
        let count = |name: &'static str| {
            let calls = groups.iter().filter_map(move |group| {
                group["calls"].as_array()?.iter().find(|call| call["name"] == name)?["calls"].as_u64()
            });
            let mut calls: Vec<u64> = calls.collect();
            calls.sort_unstable();
            calls
        };
        (groups.len(), count("getppid"), count("getuid"))
    };
    assert_eq!(of("process"), (6, vec![100, 100, 100, 100, 100, 1000], vec![50]));
    assert_eq!(of("thread"), (7, vec![100, 100, 100, 100, 100, 1000], vec![50]));
}

#[test]
fn calls_are_told_apart_by_the_file_that_they_are_about() {
    let Some((folder, _alone)) = built("counted", "tests/programs") else { return };
    let report = counted(&folder, &["--calls", "--per", "file"]);
    let groups = report["groups"].as_array().expect("there are groups");
    let null =
        groups.iter().find(|group| group["name"].as_str().is_some_and(|name| name.ends_with(":/null")));
    let write = named(&null.expect("/dev/null is a file")["calls"], "write");
    assert_eq!((&write["calls"], &write["bytes"]), (&3.into(), &30.into()), "{report}");
    assert!(groups.iter().all(|group| group["calls"].as_array().is_some_and(|calls| !calls.is_empty())));
    assert!(report["calls"].as_array().expect("calls").iter().all(|call| call["name"] != "getppid"));
}

#[test]
fn what_runs_already_is_counted_from_then_on() {
    let Some((folder, _alone)) = program("getppid") else { return };
    let mut child = Command::new(folder.join("getppid")).arg("4000000000").spawn().expect("it starts");
    let pid = child.id().to_string();
    let output = plumb(&folder, &["kernel", "--json", "--calls", "-p", &pid, "--duration", "0.5"]);
    child.kill().expect("it can be killed");
    child.wait().expect("it was killed");
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let row = named(&report["rows"], "getppid");
    println!("{row} {}", report["off_percent"]);
    let (calls, ns) = (row["calls"].as_u64().expect("counted"), row["cpu_ns"].as_u64().expect("sampled"));
    assert!(calls > 50_000, "{calls}");
    assert!((50..3000).contains(&(ns / calls)), "{} ns each", ns / calls);
    // Earlier faults are not counted.
    assert!(report["events"]["minor_faults"].as_u64() < Some(20), "{}", report["events"]);
}

#[test]
fn impossible_combinations_of_options_are_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for arguments in
        [&["kernel", "--calls"][..], &["kernel", "--per", "thread", "-a"], &["kernel", "-o", "x"]]
    {
        let output = plumb(folder, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
