//! The process report as people and programs get it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap is a failed test")]

use plumb_profile::{Begin, Life, LifeEnd, Profile};

use super::*;
use crate::words::parsed;
use plumb_fixtures::Made;

fn shown(profile: &Profile, arguments: &[&str]) -> String {
    let args = parsed::<Args>("procs", arguments).expect("they are taken");
    let mut text = Vec::new();
    let mut out = Output::plain(&mut text);
    write(profile, &args, &mut out).unwrap();
    drop(out);
    String::from_utf8(text).unwrap()
}

/// A program that costs much, and another, which it started, that costs little.
fn two() -> Profile {
    let mut made = Made::new();
    made.sample("make/1", "main@make;fork@libc;__x64_sys_clone@k;copy_process@k", 3_000_000);
    made.sample("make/1", "main@make", 95_000_000).sample("cc/2", "main@cc", 2_000_000);
    let mut profile = made.profile;
    let mut parent = None;
    for (index, (pid, name)) in [(1, "make"), (2, "cc")].into_iter().enumerate() {
        let process = plumb_profile::Id::from_index(index);
        let (exe, comm) = (profile.strings.add(&format!("/usr/bin/{name}")), profile.strings.add(name));
        let (start_ns, end_ns) = (Some(1_000_500_000), Some(1_003_500_000));
        let (begin, end) = (if index == 0 { Begin::Exec } else { Begin::Fork }, LifeEnd::Exit);
        parent = Some(profile.lives.push(Life {
            pid,
            parent,
            exe,
            comm,
            begin,
            end,
            start_ns,
            end_ns,
            cpu_ns: (index == 1).then_some(2_200_000),
            peak_rss_bytes: Some(5_000_000),
            process: Some(process),
        }));
    }
    profile
}

#[test]
fn people_see_programs_their_parts_and_their_parents() {
    let text = shown(&two(), &[]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |row: &[&str]| rows.iter().any(|found| found[..] == *row);
    assert!(
        has(&["100%", "98%", "95%", "3%", "0%", "0%", "0%", "0%", "1", "1", "3.00", "ms", "make"]),
        "{text}"
    );
    assert!(
        has(&["2%", "2%", "2%", "0%", "0%", "0%", "0%", "0%", "1", "1", "3.00", "ms", "cc", "[forked]"]),
        "{text}"
    );
    assert!(
        text.contains("cc [forked]: once by make, whose memory was 5.0 MB at its peak; 1 sample, "),
        "{text}"
    );
    assert!(text.contains("100%  fork < main"), "{text}");
    let mean = rows.iter().filter(|row| row.last() == Some(&"[forked]")).nth(1).unwrap();
    assert_eq!(mean[..2], ["2.00", "ms"], "{text}");
    assert_eq!(mean[mean.len() - 5..], ["2.20", "ms", "1", "cc", "[forked]"], "what is accounted, {text}");
    assert!(text.contains("by the samples that hit parents"), "{text}");
}

#[test]
fn what_is_below_the_limit_is_summed_up() {
    let text = shown(&two(), &["--min", "5"]);
    assert!(
        text.split_whitespace().all(|word| word != "cc") && text.contains("# 1 programs below 5 %: 2%"),
        "{text}"
    );
}

#[test]
fn programs_get_the_same_numbers() {
    let json: serde_json::Value = serde_json::from_str(&shown(&two(), &["--json"])).unwrap();
    assert_eq!(json["processes"], 2);
    assert_eq!(json["programs"][1]["parent"], 0);
    assert_eq!(json["programs"][0]["parts"]["fork"], 3_000_000);
    assert_eq!(json["programs"][0]["accounted_ns"], serde_json::Value::Null);
    assert_eq!(json["programs"][1]["accounted_ns"], 2_200_000);
    assert_eq!(json["programs"][1]["accounted_processes"], 1);
    assert_eq!(json["programs"][1]["started_from_by_samples"][0]["leaf_first"][1]["function"], "main");
    let csv = shown(&two(), &["--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("depth,exe,comm,forked,processes"), "{csv}");
    assert!(lines[2].starts_with("1,/usr/bin/cc,cc,true,1,1,3000000.0,2000000,2000000,2000000,0"), "{csv}");
}

#[test]
fn what_is_counted_is_said() {
    let event = |name: &str, unit: &str| {
        let mut profile = two();
        let event = plumb_profile::Id::from_index(0);
        let (name, unit) = (profile.strings.add(name), profile.strings.add(unit));
        *profile.events.get_mut(event) = plumb_profile::Event { name, unit };
        profile
    };
    let faults = event("page-faults", "page-faults");
    let text = shown(&faults, &[]);
    assert!(text.contains("# page-faults: 100000000 by 3 samples"), "{text}");
    assert!(text.contains("# page-faults of one process of each program"), "{text}");
    for word in ["processor time", "CPU", "Accounted", " s by"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&shown(&faults, &["--json"])).unwrap();
    assert_eq!((&json["event"], &json["unit"]), (&"page-faults".into(), &"page-faults".into()));
    let text = shown(&event("off-cpu", "ns"), &[]);
    assert!(text.contains("# off-cpu: 100.00 ms by 3 samples") && !text.contains("CPU"), "{text}");
}

#[test]
fn a_profile_without_lives_or_without_anything_says_so() {
    let mut profile = two();
    profile.lives = Default::default();
    let text = shown(&profile, &[]);
    assert!(text.contains("2 were sampled; how many ran is not known"), "{text}");
    let text = shown(&Profile::default(), &[]);
    assert!(text.contains("nothing ran and nothing was sampled"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&shown(&Profile::default(), &["--json"])).unwrap();
    assert_eq!(json["programs"], serde_json::json!([]));
}

#[test]
fn what_is_recorded_is_either_a_file_or_something_that_runs() {
    assert!(parsed::<Args>("procs", &["file", "--", "sh"]).is_err(), "a file and a command");
    assert!(parsed::<Args>("procs", &["-a", "file"]).is_err(), "a file and the machine");
}
