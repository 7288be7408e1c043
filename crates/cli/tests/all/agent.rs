//! An agent and a server: every sample of the agent is in the store, with names from files that the server asked for, even if the server
//! was not running at first.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use std::io::{BufReader, Read};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::agents::{AgentLog, CPU, Running, cpu_seconds, figure, free_address, serve};
use crate::spun::{folder, open_to_others, succeeds};
use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// The busy function, whose name is unique.
const PROGRAM: &str = "
__attribute__((noinline)) unsigned spin_for_the_agent(unsigned long rounds) {
    volatile unsigned value = 1;
    for (unsigned long round = 0; round < rounds; round++) value = value * 1664525u + 1013904223u;
    return value;
}
int main(void) { for (;;) spin_for_the_agent(1000000); }
";

/// Neither it nor what it starts may ever have others.
#[test]
fn an_agent_keeps_the_capabilities_that_it_needs() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-capabilities");
    let (_, url) = free_address();
    let (agent, _log) = Running::agent(&folder, &["agent", "--to", &url, "--spool", "spool"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.0.id())).expect("it runs");
    let set = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux 4.3 has it");
        u64::from_str_radix(text.trim(), 16).expect("a set in hexadecimal")
    };
    assert!(set("CapEff:") != 0 && set("CapBnd:") & !set("CapPrm:") & !(1 << 21) == 0, "{status}");
    assert_eq!(set("CapAmb:") | set("CapInh:"), 0, "{status}");
    assert_eq!(open_to_others(&folder.join("spool")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn sums_stay_right_while_the_rate_falls() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-budget");
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let busy = Running(
        Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .env("OTEL_SERVICE_NAME", "budget")
            .spawn()
            .expect("it starts"),
    );
    // Any cost is above the budget.
    let (agent, mut log) = Running::agent(
        &folder,
        &["agent", "--to", &url, "--spool", "spool", "--interval", "1", "--max-cpu", "0.001%"],
    );
    let (began, before) = (Instant::now(), cpu_seconds(busy.0.id()));
    for _ in 0..2 {
        log.until("sampling rate lowered");
    }
    (0..10).for_each(|_| drop(log.until("window")));
    // Four standard errors of samples that are 200 ms apart, of a program that has half of a CPU.
    let chance = |elapsed: f64| 4.0 * 0.5 * (elapsed * 0.2).sqrt();
    let so_far = || (cpu_seconds(busy.0.id()) - before, began.elapsed().as_secs_f64());
    // On a busy machine it takes longer until there are enough samples.
    while let (used, elapsed) = so_far()
        && used < 1.6 * chance(elapsed)
    {
        log.until("window");
    }
    agent.terminate();
    let (used, elapsed) = so_far();
    let last = log.until("stopped");
    assert_eq!(figure(&last, "taken_ns"), figure(&last, "sent_ns"), "{last}");
    let query =
        ["query", "--to", &url, "--type", CPU, "--json", "functions", "--query", "{service_name=\"budget\"}"];
    let answer: Value = serde_json::from_str(&succeeds(&folder, &query)).expect("it is JSON");
    let sum = answer["total"].as_f64().expect("a number") / 1e9;
    let chance = chance(elapsed);
    assert!((sum - used).abs() < chance + 0.05 * used, "{sum} of {used} s in {elapsed} s");
    assert!(used > 1.5 * chance, "too little to tell: {used} s in {elapsed} s");
}

#[test]
fn an_agent_says_that_another_one_runs() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-beside-another");
    // An address without a server.
    let (_, url) = free_address();
    let agent = |spool| Running::agent(&folder, &["agent", "--to", &url, "--spool", spool]);
    let (first, _) = agent("first");
    let (_second, AgentLog { text: log, .. }) = agent("second");
    let pid = first.0.id();
    assert!(log.contains("another agent of plumb runs") && log.contains(&format!("pid={pid}")), "{log}");
}

#[test]
fn all_samples_reach_the_store_and_get_names_from_uploaded_files() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-delivers");
    std::fs::write(folder.join("spinner.c"), PROGRAM).expect("it can be written");
    let mut compiler = Command::new("cc");
    if !compiles(compiler.current_dir(&folder).args([
        "-O1",
        "-g",
        "-Wl,--build-id",
        "-o",
        "spinner-of-agent",
        "spinner.c",
    ])) {
        return;
    }
    let (address, url) = free_address();
    let _busy = Running(Command::new(folder.join("spinner-of-agent")).spawn().expect("it starts"));
    // The first windows can't be sent.
    let mut agent = Running::plumb(
        &folder,
        &["agent", "--to", &url, "--spool", "spool", "--interval", "1", "--symbols", "server"],
    );
    let stderr = agent.0.stderr.take().expect("it is piped");
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(stderr).read_to_string(&mut text);
        text
    });
    let waiting = || {
        std::fs::read_dir(folder.join("spool")).map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().ends_with(".otlp.gz"))
                .count()
        })
    };
    let begin = Instant::now();
    while waiting() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(120), "no requests wait on disk");
        std::thread::sleep(Duration::from_millis(200));
    }
    let _server = serve(&folder, &address);
    let query = |words: &[&str]| {
        succeeds(&folder, &[&["query", "--to", &url, "--type", CPU, "--json"], words].concat())
    };
    let functions = |selector: &str| -> Value {
        serde_json::from_str(&query(&["functions", "--query", selector])).expect("it is JSON")
    };
    let spinner = "{service_name=\"spinner-of-agent\"}";
    let is_named = || functions(spinner)["rows"][0]["function"] == "spin_for_the_agent";
    let begin = Instant::now();
    while !is_named() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no name: {}", functions(spinner));
        std::thread::sleep(Duration::from_millis(500));
    }
    agent.terminate();
    assert!(agent.0.wait().is_ok_and(|status| status.success()));
    let log = log.join().expect("it is read");
    let [taken, sent] = ["taken_ns", "sent_ns"].map(|name| figure(&log, name));
    assert!(taken > 1_000_000_000 && taken == sent, "{log}");
    assert_eq!([figure(&log, "dropped"), figure(&log, "spooled")], [0, 0], "{log}");
    // Exactly the samples taken, of all processes.
    assert_eq!(functions("{}")["total"].as_u64(), Some(sent), "{log}");
    // Samples sent before the server had the file get names too.
    let begin = Instant::now();
    let is_all_named = || {
        let all = functions(spinner);
        let own = all["rows"][0]["self"].as_f64().expect("a number");
        own > 0.9 * all["total"].as_f64().expect("a number")
    };
    while !is_all_named() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{}\n{log}", functions(spinner));
        std::thread::sleep(Duration::from_millis(500));
    }
}
