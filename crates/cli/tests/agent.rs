//! An agent and a server: every sample that the agent takes is in the store, with names from files that the server asked for, also where the server
//! was away at first.
//!
//! Takes root, BPF and a C compiler; elsewhere a test says so and does nothing.

#![cfg(all(feature = "agent", feature = "server"))]

mod spun;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;
use spun::{folder, succeeds};

/// What takes the time: nobody else has a function of this name.
const PROGRAM: &str = "
__attribute__((noinline)) unsigned spin_for_the_agent(unsigned long rounds) {
    volatile unsigned value = 1;
    for (unsigned long round = 0; round < rounds; round++) value = value * 1664525u + 1013904223u;
    return value;
}
int main(void) { for (;;) spin_for_the_agent(1000000); }
";

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn plumb(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        Self(
            command.args(arguments).current_dir(folder).stderr(Stdio::piped()).spawn().expect("plumb starts"),
        )
    }

    fn terminate(&self) {
        let killed = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }
}

/// A server at an address, once it listens.
fn serve(folder: &Path, address: &str) -> Running {
    let mut server = Running::plumb(folder, &["serve", "--listen", address, "--store", "store"]);
    let mut lines = BufReader::new(server.0.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("it says where it listens").expect("it is text");
    assert!(first.contains("listening on"), "{first}");
    std::thread::spawn(move || lines.for_each(drop));
    server
}

/// A number of the line that an agent ends with.
fn figure(log: &str, name: &str) -> u64 {
    let last = log
        .lines()
        .rfind(|line| line.contains("stopped"))
        .unwrap_or_else(|| panic!("it did not stop: {log}"));
    let value = last.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {last}"))
}

/// The lines that an agent logs, as they come.
struct AgentLog {
    lines: Receiver<String>,
    text: String,
}

impl AgentLog {
    fn of(agent: &mut Running) -> Self {
        let stderr = agent.0.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { lines, text: String::new() }
    }

    /// Reads on to the next line that has these words, and gives it back.
    fn until(&mut self, words: &str) -> String {
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
fn cpu_seconds(pid: u32) -> f64 {
    let (own, _) = plumb_process::procfs::cpu_time(pid).expect("it runs");
    own.total().as_secs_f64()
}

/// A server's address and URL that are free.
fn free_address() -> (String, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a port");
    (port.to_string(), format!("http://{port}"))
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
    // Whatever it costs is too much.
    let mut agent = Running::plumb(
        &folder,
        &["agent", "--to", &url, "--spool", "spool", "--interval", "1", "--max-cpu", "0.001%"],
    );
    let mut log = AgentLog::of(&mut agent);
    log.until("started");
    let (began, before) = (Instant::now(), cpu_seconds(busy.0.id()));
    for _ in 0..2 {
        log.until("sampling rate lowered");
    }
    (0..10).for_each(|_| drop(log.until("window")));
    agent.terminate();
    let (used, elapsed) = (cpu_seconds(busy.0.id()) - before, began.elapsed().as_secs_f64());
    let last = log.until("stopped");
    assert_eq!(figure(&last, "taken_ns"), figure(&last, "sent_ns"), "{last}");
    let query =
        ["query", "--to", &url, "--type", CPU, "--json", "functions", "--query", "{service_name=\"budget\"}"];
    let answer: Value = serde_json::from_str(&succeeds(&folder, &query)).expect("it is JSON");
    let sum = answer["total"].as_f64().expect("a number") / 1e9;
    // Four standard errors of samples that are 200 ms apart, of a program that has half of a processor.
    let chance = 4.0 * 0.5 * (elapsed * 0.2).sqrt();
    assert!((sum - used).abs() < chance + 0.05 * used, "{sum} of {used} s in {elapsed} s");
    assert!(used > 1.5 * chance, "the machine is too busy to tell: {used} s in {elapsed} s");
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
    // Nobody is there to take the first windows.
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
    // Exactly what was taken, whoever it is of.
    assert_eq!(functions("{}")["total"].as_u64(), Some(sent), "{log}");
    // What was sent before the server had the file has its names too.
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
