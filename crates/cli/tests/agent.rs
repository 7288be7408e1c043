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
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a port");
    let (address, url) = (port.to_string(), format!("http://{port}"));
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
    std::thread::sleep(Duration::from_secs(4));
    assert!(
        std::fs::read_dir(folder.join("spool")).expect("there is a spool").count() > 1,
        "requests wait on disk"
    );
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
    let all = functions(spinner);
    let own = all["rows"][0]["self"].as_u64().expect("a number");
    assert!(own as f64 > 0.9 * all["total"].as_f64().expect("a number"), "{all}");
}
