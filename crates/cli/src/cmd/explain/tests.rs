//! The report as people and programs get it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap is a failed test")]

use plumb_profile::Profile;
use serde_json::Value;

use super::*;
use crate::words::parsed;
use plumb_fixtures::Made;

fn shown(profile: &Profile, arguments: &[&str]) -> String {
    let args = parsed::<Args>("explain", arguments).unwrap();
    let mut text = Vec::new();
    let mut out = Output::plain(&mut text);
    write(profile, &args, &mut out).unwrap();
    drop(out);
    String::from_utf8(text).unwrap()
}

/// An allocator that spends nearly half of its time in asking the environment.
fn pool() -> Profile {
    let mut made = Made::new();
    for (stack, count) in [
        ("main@pool;alloc:57@pool;getenv@libc.so.6", 3000),
        ("main@pool;alloc:57@pool;getenv@libc.so.6;strncmp@libc.so.6", 1400),
        ("main@pool;alloc:61@pool", 1900),
        ("main@pool;rand@libc.so.6", 1400),
        ("main@pool;free:80@pool;lookup<std::pair<int, long> >(int|char)::`operator'@pool", 1300),
        ("main@pool;alloc:61@pool;asm_exc_page_fault@k", 1000),
    ] {
        for _ in 0..count {
            made.sample("pool/1", stack, 1_000_000);
        }
    }
    let mut profile = made.profile;
    profile.meta.duration_ns = 10_000_000_000;
    profile.meta.target_cpu_ns = Some(10_000_000_000);
    profile.meta.cpus = 2;
    profile.meta.command = vec!["./pool".into(), "5 M".into()];
    profile
}

const SECTIONS: [&str; 10] = [
    "Time",
    "Where processor time went",
    "Top functions",
    "Hot lines and instructions",
    "Callers that matter",
    "Waits",
    "Causes, and what to do",
    "Quality of the data",
    "Verdict",
    "Reproduce",
];

/// The text with each run of white space as one space: lines break where the width has it.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_low_coverage_is_said_with_its_cause_before_the_verdict() {
    let mut profile = pool();
    let cause = "coverage is 46%: BPF programs of other tools (probe) ran for 5.40 s";
    profile.meta.warnings = vec!["some limit".into(), cause.into()];
    let both: [(&[&str], &str); 2] = [(&[], "looks up environment variables"), (&["--full"], "Verdict")];
    for (arguments, verdict) in both {
        let said = words(&shown(&profile, arguments));
        let place = |words: &str| said.find(words).unwrap_or_else(|| panic!("{words} is missing: {said}"));
        assert!(place(cause) < place(verdict), "{said}");
    }
}

/// Without options: what is slow, where, why, what to do, what that gains, other causes, the top functions, and what to type for more.
#[test]
fn the_answer_is_on_one_screen() {
    let text = shown(&pool(), &[]);
    assert!(text.lines().count() <= 30, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let said = words(&text);
    for part in [
        "10.000 s elapsed, 10.000 s CPU time, 10% in the kernel, CPU-bound",
        "alloc (alloc.c:57) looks up environment variables: 44% (43–45) of processor time",
        "evidence getenv 44%",
        "do ask once",
        "main draws random numbers",
        "30% 44% getenv libc.so.6",
        "19% 73% alloc alloc.c:61",
        "10000 samples, 100% of stacks complete",
        "plumb explain --full profile.plumb",
    ] {
        assert!(said.contains(part), "{part:?} is not in {text}");
    }
    let gain = said.split("gain about ").nth(1).expect("the first is of the first cause");
    let gain = gain.split('%').next().unwrap();
    let (low, high) = gain.split_once('–').unwrap();
    let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
    assert!(low <= 44.0 && 44.0 <= high, "{gain}: all that getenv takes can go");
    assert!(!said.contains("left out"), "nothing is");
}

#[test]
fn all_sections_are_there_in_their_order_however_it_is_written() {
    let profile = pool();
    for arguments in [&["--full"][..], &["--md"], &["--html"]] {
        let text = shown(&profile, arguments);
        let places: Vec<usize> = SECTIONS
            .iter()
            .enumerate()
            .map(|(index, title)| {
                let head = match arguments {
                    ["--html"] => format!("<span>{}</span>{title}</h2>", index + 1),
                    ["--md"] => format!("\n## {}. {title}\n", index + 1),
                    _ => format!("\n{}. {title}\n", index + 1),
                };
                text.find(&head).unwrap_or_else(|| panic!("{head:?} is not in {text}"))
            })
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn text_fits_80_columns() {
    for arguments in [&[][..], &["--full"], &["--ignore", "^rand$"]] {
        for line in shown(&pool(), arguments).lines() {
            assert!(line.chars().count() <= 80, "{line:?}");
        }
    }
}

#[test]
fn what_is_ignored_is_said_and_shares_are_of_the_rest() {
    let screen = words(&shown(&pool(), &["--ignore", "^rand$"]));
    assert!(
        screen.contains("left out --ignore ^rand$: 14% of processor time; shares are of the rest"),
        "{screen}"
    );
    // 44% of 86%.
    assert!(screen.contains("looks up environment variables: 51%"), "{screen}");
    let full = words(&shown(&pool(), &["--full", "--ignore", "^rand$"]));
    assert!(full.contains("--ignore ^rand$ left out 14.0% of processor time"), "{full}");
    assert!(full.contains("getenv-hot: getenv and what it calls, 51.2%"), "{full}");
    let json: Value = serde_json::from_str(&shown(&pool(), &["--ignore", "^rand$", "--json"])).unwrap();
    assert_eq!(json["left_out"]["samples"], 1400);
    assert!((json["causes"]["code"][0]["share"]["percent"].as_f64().unwrap() - 4400.0 / 86.0).abs() < 1e-9);
}

#[test]
fn the_verdict_goes_by_the_threshold() {
    let verdict = |threshold: &str| -> String {
        let json: Value =
            serde_json::from_str(&shown(&pool(), &["--json", "--threshold", threshold])).unwrap();
        json["verdict"]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (verdict("10%"), verdict("43.8"), verdict("60")),
        ("go on".into(), "can't tell".into(), "stop".into())
    );
    let text = shown(&pool(), &["--threshold", "60"]);
    assert!(text.contains("Nothing stands out: nothing named is above 60%"), "{text}");
    let text = shown(&pool(), &["--full", "--threshold", "60"]);
    assert!(text.contains("stop: nothing above 60%"), "{text}");
}

/// Names come from files: in none of the formats may they become something else.
#[test]
fn names_stay_names() {
    let profile = pool();
    let name = "lookup<std::pair<int, long> >(int|char)::`operator'";
    let html = shown(&profile, &["--html"]);
    assert!(html.contains("lookup&lt;std::pair&lt;int, long&gt; &gt;(int|char)::`operator'"), "{html}");
    assert!(!html.contains("<std::pair"));
    let md = shown(&profile, &["--md"]);
    assert!(md.contains(&format!("| `` {} `` |", name.replace('|', "\\|"))), "{md}");
    let rows = md.lines().filter(|line| line.starts_with("| ") && line.contains("lookup"));
    for row in rows {
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let head = md.lines().find(|line| line.starts_with("| Self")).unwrap();
        assert_eq!(columns(row), columns(head), "{row}");
    }
    let json: Value = serde_json::from_str(&shown(&profile, &["--json"])).unwrap();
    let functions = json["functions"].as_array().unwrap();
    assert!(functions.iter().any(|function| function["function"] == name), "{functions:?}");
}

#[test]
fn without_processor_time_it_says_what_there_is() {
    let mut made = Made::new();
    made.event("page-faults", "page-faults").sample("a/1", "main@app", 1);
    let args = parsed::<Args>("explain", &[""; 0]).unwrap();
    let error = write(&made.profile, &args, &mut Output::plain(Vec::new())).unwrap_err().to_string();
    assert!(error.contains("no samples of processor time") && error.contains("page-faults"), "{error}");
    let empty = Made::new().profile;
    let error = write(&empty, &args, &mut Output::plain(Vec::new())).unwrap_err().to_string();
    assert!(error.contains("the recording has no samples"), "{error}");
}
