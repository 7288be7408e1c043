//! Agents and servers as processes of a test, and what they log.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::spun::succeeds;

/// Profile type of processor time.
pub const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// A process that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts plumb in a folder; its stderr is piped.
    pub fn plumb(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        Self(
            command.args(arguments).current_dir(folder).stderr(Stdio::piped()).spawn().expect("plumb starts"),
        )
    }

    /// Starts an agent in a folder, and reads its log until it samples.
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

/// A server at an address, once it listens.
pub fn serve(folder: &Path, address: &str) -> Running {
    let mut server =
        Running::plumb(folder, &["serve", "--listen", address, "--store", "store", "--no-agent"]);
    let mut lines = BufReader::new(server.0.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("it says where it listens").expect("it is text");
    assert!(first.contains("listening on"), "{first}");
    std::thread::spawn(move || lines.for_each(drop));
    server
}

/// A number of the line that an agent ends with.
pub fn figure(log: &str, name: &str) -> u64 {
    let last = log
        .lines()
        .rfind(|line| line.contains("stopped"))
        .unwrap_or_else(|| panic!("it did not stop: {log}"));
    let value = last.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {last}"))
}

/// The lines that an agent logs, as they come.
pub struct AgentLog {
    lines: Receiver<String>,
    /// What was read so far.
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

    /// Reads on to the next line that has these words, and gives it back.
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

/// Processor time of a process, in seconds.
pub fn cpu_seconds(pid: u32) -> f64 {
    let (own, _) = plumb_process::procfs::cpu_time(pid).expect("it runs");
    own.total().as_secs_f64()
}

/// A server's address and URL that are free.
pub fn free_address() -> (String, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a port");
    (port.to_string(), format!("http://{port}"))
}

/// The functions that a server has of a type of profiles, all of them.
pub fn stored_functions(folder: &Path, url: &str, kind: &str, selector: &str) -> Value {
    let query =
        ["query", "--to", url, "--type", kind, "--json", "functions", "--limit", "500", "--query", selector];
    serde_json::from_str(&succeeds(folder, &query)).expect("it is JSON")
}
