//! The table of kernel time as people and programs get it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap is a failed test")]

use plumb_profile::Profile;
use serde_json::Value;

use super::*;
use crate::words::parsed;
use plumb_fixtures::Made;

fn shown(profile: &Profile, arguments: &[&str]) -> String {
    let args = parsed::<Args>("kernel", arguments).expect("they are taken");
    let mut text = Vec::new();
    let mut out = Output::plain(&mut text);
    write(profile, Seen::default(), &args, &mut out).unwrap();
    drop(out);
    String::from_utf8(text).unwrap()
}

/// 60 ms of user code, 25 ms of getdents64, 10 ms of faults of two kinds, of 100 ms that were accounted.
fn sampled() -> Profile {
    let mut made = Made::new();
    for _ in 0..60 {
        made.sample("x/1", "main@x", 1_000_000);
    }
    made.syscall(Some(217));
    for _ in 0..25 {
        made.sample("x/1", "main@x;list@x;do_syscall_64@k", 1_000_000);
    }
    made.syscall(None);
    made.sample("x/1", "main@x;asm_exc_page_fault@k", 6_000_000);
    made.sample("x/1", "main@x;asm_exc_page_fault@k;do_wp_page@k", 4_000_000);
    let mut profile = made.profile;
    profile.meta.arch = "x86_64".into();
    profile.meta.target_cpu_ns = Some(100_000_000);
    profile
}

#[test]
fn people_see_a_closed_table_and_how_far_it_is_off() {
    let text = shown(&sampled(), &["--stacks"]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |row: &[&str]| rows.iter().any(|found| found[..] == *row);
    assert!(has(&["60.00", "ms", "63%", "12.9", "60", "user", "code"]), "{text}");
    assert!(has(&["25.00", "ms", "26%", "20.0", "25", "getdents64"]), "{text}");
    assert!(has(&["10.00", "ms", "11%", "70.7", "2", "page", "faults"]), "{text}");
    assert!(has(&["4.00", "ms", "4%", "100.0", "1", "copy-on-write"]), "{text}");
    assert!(text.contains("95.00 ms, 60.00 ms in user code and 35.00 ms in the kernel"), "{text}");
    assert!(text.contains("accounts for 100.00 ms: the rows are 5.0% less"), "{text}");
    assert!(text.contains("getdents64: 25.00 ms, 25 samples\n    100%  list < main"), "{text}");
}

#[test]
fn programs_get_rows_whose_sum_is_the_total() {
    let report: Value = serde_json::from_str(&shown(&sampled(), &["--json", "--stacks=1"])).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let sum: u64 = rows.iter().map(|row| row["cpu_ns"].as_u64().unwrap()).sum();
    assert_eq!(
        (sum, &report["total_ns"], &report["rusage_ns"]),
        (95_000_000, &95_000_000.into(), &100_000_000.into())
    );
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["user", "getdents64", "page-fault"]);
    assert_eq!((&rows[1]["samples"], &rows[1]["calls"]), (&25.into(), &Value::Null));
    assert_eq!(rows[1]["stacks"][0]["leaf_first"][0]["function"], "list");
    assert_eq!(rows[2]["kinds"][1]["name"], "copy-on-write");
    let csv = shown(&sampled(), &["--csv"]);
    assert_eq!(csv.lines().nth(2).unwrap(), "getdents64,syscall,25000000,25,26.31578947368421,,,");
}

/// 30 ms of user code, then 20 ms of getdents64, after the start.
#[test]
fn a_part_of_the_time_has_its_own_sum_and_no_account() {
    let mut made = Made::new();
    for ms in 0..50 {
        made.syscall(if ms < 30 { None } else { Some(217) });
        made.sample("x/1", if ms < 30 { "main@x" } else { "main@x;do_syscall_64@k" }, 1_000_000);
    }
    let mut profile = made.profile;
    profile.meta.arch = "x86_64".into();
    profile.meta.duration_ns = 50_000_000;
    profile.meta.target_cpu_ns = Some(50_000_000);
    let report = |arguments: &[&str]| -> Value {
        serde_json::from_str(&shown(&profile, &[&["--json"], arguments].concat())).unwrap()
    };
    let whole = report(&[]);
    assert_eq!((&whole["total_ns"], &whole["rusage_ns"]), (&50_000_000.into(), &50_000_000.into()));
    let part = report(&["--time", "0.02-0.04"]);
    assert_eq!((&part["total_ns"], &part["rusage_ns"]), (&20_000_000.into(), &Value::Null));
    assert_eq!((&part["user_ns"], &part["duration_ns"]), (&10_000_000.into(), &20_000_000.into()));
    let text = shown(&profile, &["--time", "0.02-0.04"]);
    assert!(text.contains("20.00 ms, 10.00 ms in user code") && !text.contains("accounts for"), "{text}");
    let file = parsed::<Args>("kernel", &["--time", "0.1-0.2", "FILE"]).unwrap();
    assert_eq!(file.file.to_str(), Some("FILE"));
}

#[test]
fn a_kernel_that_was_not_sampled_is_said() {
    let mut profile = sampled();
    let user: Vec<_> = profile.samples.iter().filter(|sample| sample.weight == 1_000_000).take(60).collect();
    profile.samples = Default::default();
    user.into_iter().for_each(|sample| profile.samples.push(sample));
    profile.meta.warnings = vec!["user code only: the kernel is hidden".into()];
    let text = shown(&profile, &[]);
    assert!(text.contains("40.0% less") && text.contains("no sample was taken"), "{text}");
    assert!(text.contains("# user code only: the kernel is hidden"), "{text}");
}
