//! Programs that hang after they have printed their own stack traces: `plumb stack` and off-CPU times are compared with these.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::python::{counts, plumb, text, way};
use super::target::Target;

/// A function, its file, and the line in it.
pub type Frame = (String, String, u64);

/// Starts a program. Returns the lines that it prints before this one.
pub fn started(command: &mut Command, last: &str) -> (Target, Vec<String>) {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let lines = lines.map(|line| line.expect("it writes text")).take_while(|line| line != last);
    let lines = lines.collect();
    (Target(child), lines)
}

/// A program that hangs, and its frames as its language tells them, innermost first. There must be `count`.
pub fn hanging(command: &mut Command, count: usize) -> (Target, Vec<Frame>) {
    let (target, lines) = started(command, "hangs");
    let frame = |line: &String| {
        let [name, file, line] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (name.to_owned(), file.to_owned(), line.parse().expect("a number"))
    };
    let said: Vec<_> = lines.iter().map(frame).collect();
    assert_eq!(said.len(), count, "{said:?}");
    (target, said)
}

/// The stacks of a process, as `plumb stack` finds them.
pub fn stacks(folder: &Path, target: &Target) -> Value {
    let output = plumb(folder, &["stack", "--json", "-p", &target.pid()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    all["processes"][0].take()
}

/// The script frames of one of its threads, innermost first.
pub fn script_frames(thread: &Value) -> Vec<Frame> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let frames = thread["frames"].as_array().into_iter().flatten();
    frames
        .filter(|frame| frame["kind"] == "script")
        .map(|frame| (word(&frame["symbol"]), word(&frame["file"]), frame["line"].as_u64().unwrap_or(0)))
        .collect()
}

/// Records the times off the processor for a second, all of which these functions wait. Returns the stacks.
pub fn waits_all_the_time(folder: &Path, target: &Target, said: &[Frame]) -> Vec<String> {
    let output = plumb(folder, &["record", "--off-cpu", "--duration", "1", "-p", &target.pid()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&plumb(folder, &["report", "--json"]).stdout).expect("JSON");
    let lasted = report["duration_ns"].as_u64().expect("it says how long it took");
    let folded = counts(&text(&plumb(folder, &["fold", "--event", "off-cpu"]).stdout));
    let functions: Vec<&str> = said.iter().rev().map(|(name, ..)| name.as_str()).collect();
    let is_theirs = |stack: &str| way(stack, &functions) == functions.join(";");
    let off: u64 = folded.iter().filter(|(stack, _)| is_theirs(stack)).map(|(_, time)| time).sum();
    assert!(off <= lasted && off + lasted / 50 >= lasted, "{off} of {lasted}: {folded:?}");
    folded.into_keys().collect()
}
