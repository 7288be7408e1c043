//! Agents and servers as processes of a test, and their logs.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::spun::succeeds;

/// Profile type of CPU time.
pub const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// A process that is killed at the end of the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts plumb in a directory; its stderr is piped.
    pub fn plumb(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        Self(
            command.args(arguments).current_dir(folder).stderr(Stdio::piped()).spawn().expect("plumb starts"),
        )
    }

    /// Starts an agent in a directory, and reads its log until it samples.
    pub fn agent(folder: &Path, arguments: &[&str]) -> (Self, AgentLog) {
        let mut agent = Self::plumb(folder, arguments);
        let mut log = AgentLog::of(&mut agent);
        log.until("started");
        (agent, log)
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let killed = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }
}

/// Starts a server at an address, and waits until it listens.
pub fn serve(folder: &Path, address: &str) -> Running {
    let mut server =
        Running::plumb(folder, &["serve", "--listen", address, "--store", "store", "--no-agent"]);
    let mut lines = BufReader::new(server.0.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("it says where it listens").expect("it is text");
    assert!(first.contains("listening on"), "{first}");
    std::thread::spawn(move || lines.for_each(drop));
    server
}

/// A number in the last line of an agent's log.
pub fn figure(log: &str, name: &str) -> u64 {
    let last = log
        .lines()
        .rfind(|line| line.contains("stopped"))
        .unwrap_or_else(|| panic!("it did not stop: {log}"));
    let value = last.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {last}"))
}

/// The log lines of an agent, as they arrive.
pub struct AgentLog {
    lines: Receiver<String>,
    /// The text read so far.
    pub text: String,
}

impl AgentLog {
    /// Reads its stderr.
    pub fn of(agent: &mut Running) -> Self {
        let stderr = agent.0.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { lines, text: String::new() }
    }

    /// Reads up to the next line with these words, and returns it.
    pub fn until(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(120));
            let line = line.unwrap_or_else(|_| panic!("no {words:?} in {}", self.text));
            self.text.push_str(&line);
            self.text.push('\n');
            if line.contains(words) {
                return line;
            }
        }
    }
}

/// CPU time of a process, in seconds.
pub fn cpu_seconds(pid: u32) -> f64 {
    let (own, _) = plumb_process::procfs::cpu_time(pid).expect("it runs");
    own.total().as_secs_f64()
}

/// A free address for a server, and its URL.
pub fn free_address() -> (String, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a port");
    (port.to_string(), format!("http://{port}"))
}

/// All functions of a profile type on a server.
pub fn stored_functions(folder: &Path, url: &str, kind: &str, selector: &str) -> Value {
    let query =
        ["query", "--to", url, "--type", kind, "--json", "functions", "--limit", "500", "--query", selector];
    serde_json::from_str(&succeeds(folder, &query)).expect("it is JSON")
}
