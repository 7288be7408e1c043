//! `plumb agent --kernel-time`: every system call of a service is counted once in the store, with its CPU time, even of processes that ended at once.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use crate::spun;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::agents::{Running, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

const CALLS: &str = "system_calls:system_calls:count::";
const TIME: &str = "kernel_time:kernel_time:nanoseconds::";
const WATCH: &str = "agent_watch:agent_watch:nanoseconds::";

/// A service's figures of a type: total, and by call.
struct Figures(Value);

impl Figures {
    fn read(folder: &Path, url: &str, kind: &str, service: &str) -> Self {
        let selector = format!("{{service_name=\"{service}\"}}");
        Self(stored_functions(folder, url, kind, &selector))
    }

    fn total(&self) -> u64 {
        self.0["total"].as_u64().unwrap_or(0)
    }

    fn of(&self, call: &str) -> u64 {
        let rows = self.0["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = rows.iter().find(|row| row["function"] == call);
        row.map_or(0, |row| row["self"].as_u64().expect("a number"))
    }
}

#[test]
fn each_call_of_a_service_is_counted_once_and_its_time_is_the_kernels() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-kernel-time");
    let program = "kernel-calls-of-agent";
    if !spun::compiled(&folder, "tests/programs/kernel_calls.c", program) {
        return;
    }
    for copy in ["kernel-child-of-agent", "kernel-dropped-of-agent"] {
        std::fs::copy(folder.join(program), folder.join(copy)).expect("there is room");
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let words =
        ["agent", "--kernel-time", "--to", &url, "--spool", "spool", "--interval", "2", "--symbols", "agent"];
    let rule = ["--relabel", "drop:service.name=kernel-dropped.*", "--max-cpu", "100%", "--no-observe"];
    let (agent, mut log) = Running::agent(&folder, &[&words[..], &rule].concat());
    let run = |program: &str| {
        let child = folder.join("kernel-child-of-agent");
        let output = Command::new(folder.join(program)).arg(child).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let said = run(program);
    // Windows end between these.
    (0..2).for_each(|_| drop(log.until(" window ")));
    run(program);
    run("kernel-dropped-of-agent");
    std::thread::sleep(Duration::from_millis(300));
    agent.terminate();
    log.until("stopped");
    let figures = |kind: &str, service: &str| Figures::read(&folder, &url, kind, service);
    let calls = figures(CALLS, program);
    // Two runs of 100,000, and of 200 children with 50 each.
    assert_eq!(calls.of("getppid"), 2 * (100_000 + 200 * 50), "{}", calls.0);
    // The C library asks for random numbers once when a program starts.
    assert!((4000..=4002).contains(&calls.of("getrandom")), "{}", calls.0);
    assert_eq!(calls.of("wait4"), 2 * 300, "{}", calls.0);
    assert_eq!(calls.of("clone"), 2 * 300, "a child comes out of no call of its own: {}", calls.0);
    // Calls of the program's children, including those of the dropped run.
    let of_children = figures(CALLS, "kernel-child-of-agent");
    assert_eq!(of_children.of("getppid"), 3 * 100 * 70, "{}", of_children.0);
    assert_eq!(of_children.of("execve"), 3 * 100, "{}", of_children.0);
    for kind in [CALLS, TIME] {
        assert_eq!(figures(kind, "kernel-dropped-of-agent").total(), 0, "a rule leaves it out");
    }
    // Compared with the program's own measurement.
    let time = figures(TIME, program);
    let own =
        said.trim().strip_prefix("getrandom_ns=").and_then(|ns| ns.parse::<f64>().ok()).expect("it says it");
    let ratio = time.of("getrandom") as f64 / (2.0 * own);
    assert!((0.8..1.2).contains(&ratio), "{ratio}: {own} ns in one run, {}", time.0);
    assert!(time.of("clock_nanosleep") < 20_000_000, "it slept for a second: {}", time.0);
    let each = time.of("getppid") as f64 / calls.of("getppid") as f64;
    assert!(each < 500.0, "{each} ns for a call that does nothing");
    assert!(figures(WATCH, "plumb-agent").total() > 0, "calls take longer, which is the agent's cost");
    assert!(!log.text.contains("WARN processes begin faster"), "{}", log.text);
}
