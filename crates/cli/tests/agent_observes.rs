//! A daemon that lists /proc each second among idle processes: findings report its wake-up interval, its call and the size of its buffer.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

mod agents;
mod spun;

use std::process::Command;
use std::time::{Duration, Instant};

use agents::{AgentLog, CPU, Running, free_address, serve};
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;
use spun::{compiled, folder, succeeds};

/// Idle processes, so that /proc takes more than one buffer.
const IDLE: usize = 300;

#[test]
fn a_daemon_that_lists_proc_is_named_with_its_period_and_buffer() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-observes");
    if !compiled(&folder, "tests/programs/proc_reader.c", "proc-reader-of-test") {
        return;
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let idle = || Running(Command::new("sleep").arg("100000").spawn().expect("it starts"));
    let _idle: Vec<Running> = (0..IDLE).map(|_| idle()).collect();
    let mut daemon = Command::new(folder.join("proc-reader-of-test"));
    let _daemon = Running(daemon.env("OTEL_SERVICE_NAME", "reader").spawn().expect("it starts"));
    let (_agent, _log) = Running::agent(
        &folder,
        // Windows of the usual length: in shorter ones the daemon has too few samples to stand out.
        &["agent", "--to", &url, "--spool", "spool", "--max-cpu", "50%"],
    );
    let query =
        ["query", "--to", &url, "--type", CPU, "--json", "findings", "--query", "{service_name=\"reader\"}"];
    let begin = Instant::now();
    let found = loop {
        let answer: Value = serde_json::from_str(&succeeds(&folder, &query)).expect("it is JSON");
        let first = answer["findings"][0].clone();
        if first["period_ns"].is_u64() {
            break first;
        }
        assert!(begin.elapsed() < Duration::from_secs(400), "{answer}");
        std::thread::sleep(Duration::from_secs(1));
    };
    assert_eq!(found["service"], "reader");
    // The program sleeps for a second, and then works for some milliseconds, longer on a busy machine.
    let period = found["period_ns"].as_f64().expect("a number") / 1e9;
    assert!((1.0..1.5).contains(&period), "{found}");
    let details = found["details"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let getdents: Vec<&str> =
        details.filter(|detail| detail.contains(" getdents64 of /proc, buffer 8 KiB")).collect();
    assert!(!getdents.is_empty(), "{found}");
    // Each time it lists /proc ten times, in at least three calls: the last one returns nothing.
    let count =
        getdents[0].strip_prefix("Each wake-up: ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(count.is_some_and(|count: u32| count >= 30 && count.is_multiple_of(10)), "{found}");
    assert!(getdents[0].contains("with glibc's 32 KiB it would take 2"), "{found}");
}

#[test]
fn nobody_is_observed_if_that_is_not_wanted() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-observes-not");
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    // This program spends its CPU time in the kernel.
    let mut busy = Command::new("dd");
    let busy = busy
        .args(["if=/dev/zero", "of=/dev/null", "bs=512", "status=none"])
        .env("OTEL_SERVICE_NAME", "copier");
    let _busy = Running(busy.spawn().expect("it starts"));
    let observed = |options: &[&str], windows: usize| {
        let arguments = ["agent", "--to", &url, "--spool", "spool", "--interval", "1", "--max-cpu", "50%"];
        let mut agent = Running::plumb(&folder, &[&arguments, options].concat());
        let mut log = AgentLog::of(&mut agent);
        (0..windows).for_each(|_| drop(log.until("window")));
        agent.terminate();
        log.until("stopped");
        let types = succeeds(&folder, &["query", "--to", &url, "types"]);
        types.contains("observation")
    };
    assert!(!observed(&["--no-observe"], 8));
    assert!(observed(&[], 12), "without the option it is");
}
