//! The agent built into `plumb serve`: its samples are in the store of its server, it ends with the server, and the server
//! works even if the agent may not sample.
//!
//! Needs root and BPF; without them, a test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use crate::spun;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::agents::{AgentLog, CPU, Running, figure, free_address};
use crate::spun::{folder, succeeds};
use plumb_fixtures::{Requirement, needs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Profile type of started processes.
const PROCESSES: &str = "processes:processes:count::";
/// Time limit for each step.
const TIME: Duration = Duration::from_secs(120);

/// A server with options, and its log, which includes its agent's.
fn serving(folder: &Path, address: &str, options: &[&str]) -> (Running, AgentLog) {
    let mut server =
        Running::plumb(folder, &[&["serve", "--listen", address, "--store", "store"], options].concat());
    let mut log = AgentLog::of(&mut server);
    log.until("listening on");
    (server, log)
}

/// A busy process of a service, run by another user, whose files in /proc are not readable by all.
fn busy(service: &str) -> Running {
    let mut shell = Command::new("setpriv");
    Running(
        shell
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["sh", "-c", "while :; do :; done"])
            .env("OTEL_SERVICE_NAME", service)
            .spawn()
            .expect("it starts"),
    )
}

/// The CPU time in the store.
fn stored(folder: &Path, url: &str, selector: &str, more: &[&str]) -> u64 {
    total(folder, url, CPU, selector, more)
}

/// The sum of the selected profiles in the store.
fn total(folder: &Path, url: &str, of: &str, selector: &str, more: &[&str]) -> u64 {
    let query = ["query", "--to", url, "--type", of, "--json", "functions", "--query", selector];
    let answer: Value =
        serde_json::from_str(&succeeds(folder, &[&query, more].concat())).expect("it is JSON");
    answer["total"].as_u64().expect("a number")
}

/// Waits until a condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIME, "not within {TIME:?}: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .expect("the kernel tells of children");
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_server_profiles_its_machine_and_keeps_the_last_window() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-inside");
    let (address, url) = free_address();
    // The agent's options are passed on to it.
    let (mut server, mut log) = serving(&folder, &address, &["--processes"]);
    let _busy = busy("inside");
    // Longer than a window of 15 seconds takes.
    log.until("window");
    until("its samples", || stored(&folder, &url, "{service_name=\"inside\"}", &[]) > 0);
    until("a process that started", || total(&folder, &url, PROCESSES, "{}", &[]) > 0);
    let agent = children(server.0.id());
    assert_eq!(agent.len(), 1);
    // Samples that were not sent yet are sent before the server ends.
    std::thread::sleep(Duration::from_secs(3));
    let before = stored(&folder, &url, "{}", &[]);
    server.terminate();
    let last = log.until("stopped taken");
    assert!(server.0.wait().is_ok_and(|status| status.success()));
    assert!(!is_running(agent[0]));
    assert_eq!([figure(&last, "dropped"), figure(&last, "spooled")], [0, 0], "{last}");
    let (_server, _log) = serving(&folder, &address, &["--no-agent"]);
    let after = stored(&folder, &url, "{}", &[]);
    assert_eq!(after, figure(&last, "taken_ns"), "{last}");
    assert!(after > before, "the last window is in the store: {after} after {before}");
}

#[test]
fn an_agent_ends_with_a_server_that_is_killed() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-inside-killed");
    let (address, _) = free_address();
    let (mut server, mut log) = serving(&folder, &address, &[]);
    log.until("started url");
    log.until("started url");
    let agent = children(server.0.id());
    assert_eq!(agent.len(), 1);
    server.0.kill().expect("it is killed");
    // The kernel may signal it more than once, up to its end.
    let agent_pid = Pid::from_raw(agent[0].cast_signed()).expect("it is one");
    let begin = Instant::now();
    while is_running(agent[0]) && kill_process(agent_pid, Signal::TERM).is_ok() {
        assert!(begin.elapsed() < TIME, "the agent goes on");
        std::thread::sleep(Duration::from_millis(2));
    }
    // There was no server to send to.
    log.until("stopped taken");
}

#[test]
fn an_agent_gets_a_token_that_nobody_sees() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-inside-token");
    let token = "0123456789abcdef-of-the-test";
    std::fs::write(folder.join("tokens"), format!("{token} admin\n")).expect("it can be written");
    std::fs::write(folder.join("token"), token).expect("it can be written");
    let chmod = Command::new("chmod").args(["600", "tokens", "token"]).current_dir(&folder).status();
    assert!(chmod.is_ok_and(|status| status.success()));
    let (address, url) = free_address();
    let (server, mut log) = serving(&folder, &address, &["--tokens", "tokens"]);
    let _busy = busy("inside-token");
    log.until("window");
    let selector = "{service_name=\"inside-token\"}";
    until("its samples", || stored(&folder, &url, selector, &["--token", "token"]) > 0);
    let agent = children(server.0.id());
    let read = |file: &str| {
        std::fs::read(format!("/proc/{}/{file}", agent[0])).map(|bytes| spun::text(&bytes)).expect("it runs")
    };
    let secret =
        read("environ").split('\0').find_map(|one| Some(one.strip_prefix("PLUMB_AGENT_TOKEN=")?.to_owned()));
    let secret = secret.expect("it has a token");
    assert!(secret.len() >= 32 && secret != token, "it is not one of the file");
    assert!(!read("cmdline").contains(&secret));
    assert!(!log.text.contains(&secret));
}

#[test]
fn a_server_without_rights_says_so_once_and_serves() {
    if !needs(Requirement::Root) {
        return;
    }
    let folder = folder("agent-inside-rights");
    let (address, url) = free_address();
    let mut server = Command::new("setpriv");
    server.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_plumb"), "serve", "--listen"]);
    server.args([&address, "--store", "store"]).current_dir(&folder).stderr(Stdio::piped());
    let mut server = Running(server.spawn().expect("setpriv starts"));
    let mut log = AgentLog::of(&mut server);
    let line = log.until("this machine is not profiled");
    assert!(line.contains("CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE") && line.contains("--no-agent"), "{line}");
    std::fs::write(folder.join("api.folded"), "main;work 7\n").expect("it can be written");
    succeeds(&folder, &["push", "api.folded", "--service", "api", "--to", &url]);
    assert_eq!(succeeds(&folder, &["query", "--to", &url, "services"]), "api\n");
    assert_eq!(children(server.0.id()), [0; 0]);
    server.terminate();
    log.until("stopped");
    assert_eq!(log.text.matches("not profiled").count(), 1, "{}", log.text);
}
