//! `plumb agent --processes`: each started process is counted once in the store, with its parents, and the CPU time of short-lived ones.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use crate::spun;
use std::process::Command;
use std::time::Duration;

use crate::agents::{Running, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

const PROCESSES: &str = "processes:processes:count::";
const SHORT_LIVED: &str = "short_lived_cpu:short_lived_cpu:nanoseconds::";

#[test]
fn each_process_is_counted_once_with_who_started_it() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-processes");
    if !spun::compiled(&folder, "tests/programs/touches.c", "forks-of-agent") {
        return;
    }
    // Copies of a program and a shell, so that other processes on the machine are not counted.
    for (from, to) in [("/bin/true", "true-of-agent"), ("/bin/sh", "sh-of-agent")] {
        std::fs::copy(from, folder.join(to)).expect("it is there");
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let words =
        ["agent", "--processes", "--to", &url, "--spool", "spool", "--interval", "3", "--max-cpu", "100%"];
    let (agent, mut log) = Running::agent(&folder, &words);
    let run = |program: &str, words: &[&str]| {
        let out =
            Command::new(folder.join(program)).args(words).current_dir(&folder).output().expect("it starts");
        assert!(out.status.success(), "{out:?}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    // The first windows may lack the CPU time of tasks that started before.
    log.until(" window ");
    run("sh-of-agent", &["-c", "i=0; while [ $i -lt 100 ]; do ./true-of-agent; i=$((i+1)); done"]);
    let forks = run("forks-of-agent", &["300", "children"]);
    std::thread::sleep(Duration::from_millis(300));
    agent.terminate();
    log.until("stopped");
    let functions = |kind: &str, service: &str| {
        stored_functions(&folder, &url, kind, &format!("{{service_name=\"{service}\"}}"))
    };
    let total = |answer: &Value| answer["total"].as_u64().unwrap_or(0);
    let under = |answer: &Value, function: &str| {
        let rows = answer["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = rows.iter().find(|row| row["function"] == function);
        row.map_or(0, |row| row["total"].as_u64().expect("a number"))
    };
    // A process that exec'd after the window of its fork is counted under the program that forked it.
    let started = functions(PROCESSES, "true-of-agent");
    let by_shell = functions(PROCESSES, "sh-of-agent");
    assert!((98..=100).contains(&total(&started)), "{started}");
    assert!((100..=101).contains(&(total(&started) + total(&by_shell))), "{started} {by_shell}");
    assert_eq!(under(&started, "sh-of-agent"), total(&started), "the shell started all of them: {started}");
    // The program itself is counted, too.
    let forked = functions(PROCESSES, "forks-of-agent");
    assert!((300..=301).contains(&total(&forked)), "{forked}");
    // From the parent's accounting. Children that lived on into the next window are not included.
    let waited_ns: f64 = forks.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).expect("a number");
    let short_ns = total(&functions(SHORT_LIVED, "forks-of-agent")) as f64;
    assert!(short_ns > 0.8 * waited_ns && short_ns < 1.2 * waited_ns, "{short_ns} of {waited_ns}");
}
