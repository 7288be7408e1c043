//! `plumb stack` of Python programs, compared with Python's own stack traces.
//!
//! Needs CPython 3.11 (Debian 12's). If it is missing, or ptrace is forbidden, a test prints so and is skipped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::target::Target;
use plumb_fixtures::{Requirement, needs, skip};
use serde_json::Value;

const PYTHON: &str = "/usr/bin/python3.11";

/// Frames of a thread, innermost first: function, file, line.
type Frames = Vec<(String, String, u64)>;

/// The program, once all threads have reached their places, and Python's own stack traces by thread.
fn target() -> Option<(Target, BTreeMap<u64, Frames>)> {
    if !Path::new(PYTHON).exists() {
        skip(Requirement::Python, format_args!("there is no {PYTHON}"));
        return None;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/frames.py");
    let mut command = Command::new(PYTHON);
    let mut child = command.arg(program).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let target = Target(child);
    let mut said: BTreeMap<u64, Frames> = BTreeMap::new();
    for line in lines.map(|line| line.expect("it writes text")) {
        if line == "ready" {
            return Some((target, said));
        }
        let [thread, line, function, file] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let frame = (function.to_owned(), file.to_owned(), line.parse().expect("a number"));
        said.entry(thread.parse().expect("a number")).or_default().push(frame);
    }
    panic!("the program ended");
}

/// The threads of the process in `plumb stack --json`, and the process. `None` with a notice if ptrace is
/// forbidden.
fn stack(target: &Target, more: &[&str]) -> Option<Value> {
    if !needs(Requirement::Ptrace) {
        return None;
    }
    let mut plumb = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output = plumb.args(["stack", "--json", "-p", &target.pid()]).args(more).output();
    let output = output.expect("plumb runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    Some(all["processes"][0].take())
}

fn frames(thread: &Value) -> &Vec<Value> {
    thread["frames"].as_array().expect("there are frames")
}

fn is_script(frame: &&Value) -> bool {
    frame["kind"] == "script"
}

fn script(thread: &Value) -> Frames {
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let of = |frame: &Value| {
        (text(&frame["symbol"]), text(&frame["file"]), frame["line"].as_u64().expect("a line"))
    };
    frames(thread).iter().filter(is_script).map(of).collect()
}

#[test]
fn functions_and_lines_are_those_that_python_tells() {
    let Some((target, said)) = target() else { return };
    let Some(process) = stack(&target, &[]) else { return };
    assert!(process["interpreter"].as_str().expect("it is known").starts_with("CPython 3.11."));
    let threads = process["threads"].as_array().expect("there are threads");
    assert_eq!(threads.len(), 3);
    for thread in threads {
        let found = script(thread);
        if let Some(said) = said.get(&thread["tid"].as_u64().expect("it has a number")) {
            assert!(said.len() >= 5);
            assert_eq!(&found, said);
        } else {
            // This thread prints, then waits.
            let names: Vec<_> = found.iter().map(|(name, _, line)| (name.as_str(), *line)).collect();
            let source = include_str!("../programs/frames.py");
            let line =
                |text: &str| source.lines().position(|line| line == text).expect("it is there") as u64 + 1;
            assert_eq!(names, [("main", line("    time.sleep(")), ("<module>", line("main()"))]);
        }
    }
}

#[test]
fn native_frames_stay_between_those_of_the_program() {
    let Some((target, said)) = target() else { return };
    let (Some(merged), Some(native)) = (stack(&target, &[]), stack(&target, &["--native"])) else { return };
    let threads = |process: &Value| process["threads"].as_array().expect("there are threads").clone();
    for (merged, native) in threads(&merged).iter().zip(threads(&native)) {
        assert!(frames(&native).iter().all(|frame| !is_script(&frame)));
        let is_loop = |frame: &&Value| frame["symbol"] == "_PyEval_EvalFrameDefault";
        assert!(!frames(merged).iter().any(|frame| is_loop(&frame)), "each round stands for frames");
        let addresses = |frames: &[Value]| -> Vec<Value> {
            let native = frames.iter().filter(|frame| !is_script(frame) && !is_loop(frame));
            native.map(|frame| frame["address"].clone()).collect()
        };
        assert_eq!(addresses(frames(merged)), addresses(frames(&native)));
        // Runs of consecutive script frames are as many as eval frames that don't follow each other directly.
        let runs = |is: &dyn Fn(&&Value) -> bool, frames: &[Value]| {
            frames.chunk_by(|a, b| is(&a) == is(&b)).filter(|run| is(&&run[0])).count()
        };
        let rounds = runs(&is_loop, frames(&native));
        assert_eq!(runs(&is_script, frames(merged)), rounds);
        assert!(!said.contains_key(&native["tid"].as_u64().expect("a number")) || rounds >= 2);
    }
}
