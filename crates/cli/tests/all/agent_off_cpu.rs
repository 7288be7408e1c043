//! `plumb agent --off-cpu`: the off-CPU time of threads is in the store window by window, including that of a thread that never comes back.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use crate::spun;
use std::process::Command;
use std::time::Instant;

use crate::agents::{CPU, Running, figure, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs};

const BLOCKED: &str = "off_cpu:off_cpu:nanoseconds::";
const WAITED: &str = "run_queue:run_queue:nanoseconds::";

#[test]
fn threads_that_hang_or_sleep_are_in_every_window_with_all_of_its_time() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-off-cpu");
    if !spun::compiled(&folder, "tests/programs/naps.c", "naps-of-agent") {
        return;
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let _program = Running(Command::new(folder.join("naps-of-agent")).spawn().expect("it starts"));
    let words = [
        "agent",
        "--off-cpu",
        "--to",
        &url,
        "--spool",
        "spool",
        "--interval",
        "2",
        "--symbols",
        "agent",
        "--max-cpu",
        "100%",
        // High enough that each interval has a stack of its own: at a low rate on a busy CPU, some would be represented by stacks of others.
        "--frequency",
        "999",
    ];
    let (agent, mut log) = Running::agent(&folder, &words);
    let began = Instant::now();
    (0..4).for_each(|_| drop(log.until("window of off-CPU time")));
    let at_least = began.elapsed().as_secs_f64();
    agent.terminate();
    let last = log.until("stopped");
    // From before its start to after its end.
    let at_most = began.elapsed().as_secs_f64() + 2.0;
    let functions = |kind: &str, selector: &str| stored_functions(&folder, &url, kind, selector);
    let total = |kind: &str, selector: &str| functions(kind, selector)["total"].as_u64().unwrap_or(0);
    // Equal to the nanosecond.
    let [taken, sent] = ["off_cpu_taken_ns", "off_cpu_sent_ns"].map(|name| figure(&last, name));
    assert_eq!(taken, sent, "{last}");
    assert_eq!(total(BLOCKED, "{}") + total(WAITED, "{}"), sent, "{last}");
    assert_eq!(total(CPU, "{}"), figure(&last, "sent_ns"), "samples of processor time are apart");
    let naps = "{service_name=\"naps-of-agent\"}";
    let blocked = functions(BLOCKED, naps);
    let seconds_in = |function: &str| {
        let rows = blocked["rows"].as_array().expect("there are rows");
        let row = rows.iter().find(|row| row["function"] == function);
        row.map_or(0.0, |row| row["total"].as_f64().expect("a number") / 1e9)
    };
    for function in ["waits_for_ever", "main"] {
        let seconds = seconds_in(function);
        // The main thread uses a little CPU time, or waits for a CPU.
        let waited =
            if function == "main" { total(WAITED, naps) as f64 / 1e9 + 0.05 * at_most } else { 0.01 };
        assert!(
            seconds <= at_most && seconds + waited >= at_least,
            "{function}: {seconds} s, without a processor {waited} s, of {at_least} to {at_most}: {last} {blocked}"
        );
    }
    // A run-queue wait at a program's start has no stack yet.
    let is_reason =
        |name: &str| ["read", "nanosleep", "[no user stack recorded]"].iter().any(|part| name.contains(part));
    for row in blocked["rows"].as_array().expect("there are rows") {
        let (name, own) =
            (row["function"].as_str().expect("a name"), row["self"].as_f64().expect("a number"));
        assert!(own == 0.0 || is_reason(name), "stacks begin with the reason: {row}");
        assert!(!name.starts_with('[') || own < 0.02 * at_least * 1e9, "{row}");
    }
}

#[test]
fn what_min_block_leaves_out_is_a_figure_of_the_agent() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-min-block");
    if !spun::compiled(&folder, "tests/programs/naps.c", "short-naps") {
        return;
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let _program = Running(Command::new(folder.join("short-naps")).spawn().expect("it starts"));
    let words =
        ["agent", "--off-cpu", "--min-block", "30s", "--to", &url, "--spool", "spool", "--interval", "2"];
    let (agent, mut log) = Running::agent(&folder, &[&words[..], &["--max-cpu", "100%"]].concat());
    let began = Instant::now();
    (0..3).for_each(|_| drop(log.until("window of off-CPU time")));
    let at_least = began.elapsed().as_secs_f64();
    agent.terminate();
    assert_eq!(figure(&log.until("stopped"), "off_cpu_lost_ns"), 0);
    let total = |kind: &str, selector: &str| {
        stored_functions(&folder, &url, kind, selector)["total"].as_f64().unwrap_or(0.0) / 1e9
    };
    // The agent's main thread naps all the time, and others on the machine may, too.
    let short =
        total("agent_short_off_cpu:agent_short_off_cpu:nanoseconds::", "{service_name=\"plumb-agent\"}");
    assert!(short >= 0.8 * at_least, "{short} s of {at_least}");
    // The program's other thread hangs.
    let hangs = total(BLOCKED, "{service_name=\"short-naps\"}");
    assert!(hangs >= 0.9 * at_least && hangs < 1.5 * at_least + 4.0, "{hangs} s of {at_least}");
}
