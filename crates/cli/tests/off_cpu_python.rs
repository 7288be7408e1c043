//! `plumb record --off-cpu -p` of a Python program that hangs: its functions are there, with the whole time.
//!
//! Needs CPython 3.11 (Debian 12's) and BPF. Where either is missing a test says so and does nothing.

mod python;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_fixtures::{Requirement, needs, skip};
use python::{counts, plumb, program, text};
use serde_json::Value;

const PYTHON: &str = "/usr/bin/python3.11";

/// Functions of the program, outermost first, and how many threads wait there.
const WAITS: [(&[&str], u64); 5] = [
    (&["<module>", "main", "Thread.join"], 1),
    (&["Thread.run", "takes_both", "takes_other"], 2),
    (&["Thread.run", "hangs_in_recv"], 1),
    (&["Thread.run", "waits_for_work", "jobs", "Queue.get"], 1),
    (&["Thread.run", "called_by_native", "called_by_native.<locals>.<lambda>", "Event.wait"], 1),
];

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// The program, ended with the test.
struct Hanging(Child);

impl Hanging {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(PYTHON);
        command.args(options).arg(program("hangs.py")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says that it hangs");
        assert_eq!(line, "hangs\n");
        Self(child)
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nanoseconds off the processor of threads with these functions in their stacks, in this order.
fn time_in(folded: &BTreeMap<String, u64>, functions: &[&str]) -> u64 {
    let has_all = |stack: &str| {
        let mut names = stack.split(';');
        functions.iter().all(|function| names.any(|name| name == *function))
    };
    folded.iter().filter(|(stack, _)| has_all(stack)).map(|(_, time)| time).sum()
}

/// Threads that wait all the time: nothing of their stacks comes from the kernel's programs, which only see who runs.
#[test]
fn functions_of_threads_that_hang_are_there_with_the_whole_time() {
    if !Path::new(PYTHON).exists() {
        skip(Requirement::Python, format_args!("there is no {PYTHON}"));
        return;
    }
    if !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("off-cpu-python");
    let hanging = Hanging::start(&[]);
    for options in [&[][..], &["--capture", "perf"]] {
        let pid = hanging.0.id().to_string();
        let record = ["record", "--off-cpu", "--duration", "1", "-p", &pid];
        let output = plumb(&folder, &[&record, options].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("Python"), "none of its functions is missing: {said}");
        let report: Value =
            serde_json::from_slice(&plumb(&folder, &["report", "--json"]).stdout).expect("JSON");
        let lasted = report["duration_ns"].as_u64().expect("it says how long it took");
        let folded = counts(&text(&plumb(&folder, &["fold", "--event", "off-cpu"]).stdout));
        println!("{folded:#?}");
        for (functions, threads) in WAITS {
            let (off, whole) = (time_in(&folded, functions), threads * lasted);
            assert!(off <= whole && off + whole / 50 >= whole, "{functions:?}: {off} of {whole} ns: {said}");
        }
        // Each is where it runs: no native frames are missing between them.
        let strange: Vec<_> = folded.keys().filter(|stack| stack.contains("[native frames")).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
}
