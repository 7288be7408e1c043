//! `plumb stack` of programs of Go: goroutines that no thread runs, held against what Go's runtime prints of itself.
//!
//! Needs Go; without it, a test prints so and is skipped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use plumb_fixtures::{Requirement, go, needs};

use crate::target::Target;

/// A goroutine's state, and its functions from the innermost.
type Trace = (String, Vec<String>);

/// Builds the program with these options of Go; `None` without Go.
fn build(options: &[&str]) -> Option<PathBuf> {
    if !needs(Requirement::Go) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goroutines");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let program = folder.join(format!("parked{}", options.concat()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/parked.go");
    let [built, source] = [&program, &source].map(|path| path.to_str().expect("it is text"));
    go::run(&folder, "local", &[&["build", "-o", built], options, &[source]].concat());
    Some(program)
}

/// Starts the program. Returns it with what Go says of the goroutines that wait, by number.
fn start(program: &Path) -> (Target, BTreeMap<u64, Trace>) {
    let child = Command::new(program).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut running = Target(child);
    let lines = BufReader::new(running.0.stdout.take().expect("it is piped")).lines();
    let lines = lines.map(|line| line.expect("it is text")).take_while(|line| line != "ready");
    let mut said: BTreeMap<u64, Trace> = BTreeMap::new();
    let mut current = None;
    for line in lines {
        if let Some(rest) = line.strip_prefix("goroutine ") {
            let (id, state) = rest.split_once(" [").expect("its number is before its state");
            let id = id.parse().expect("it is a number");
            current = Some(id);
            said.insert(id, (state.trim_end_matches("]:").to_owned(), Vec::new()));
        } else if let Some((_, functions)) = current.and_then(|id| said.get_mut(&id))
            && !line.starts_with(['\t', ' '])
            && !line.starts_with("created by")
            && let Some((function, _)) = line.rsplit_once('(')
        {
            functions.push(function.to_owned());
        }
    }
    // Frames in the middle of a stack of more than 100 are left out there.
    said.retain(|_, (state, functions)| state != "running" && functions.len() < 100);
    assert!(said.len() > 1000, "it waits {} times", said.len());
    (running, said)
}

/// The process as `plumb stack` shows it. A busy machine may leave too little time for all goroutines at first.
fn stack(pid: u32) -> Value {
    let looks = (0..10).map(|_| stack_now(pid));
    let mut looks = looks.skip_while(|process| process["goroutines_are_all"] == false);
    looks.next().expect("one of ten has all")
}

fn stack_now(pid: u32) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output = { output }.args(["stack", "--json", &pid.to_string()]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    document["processes"][0].clone()
}

/// The functions of a group that Go's own trace shows: not those of the runtime, nor wrappers that the compiler made.
fn functions(group: &Value) -> Vec<String> {
    let frames = group["frames"].as_array().expect("it has frames");
    let names = frames.iter().map(|frame| frame["symbol"].as_str().expect("it has a name"));
    names
        .filter(|name| !name.starts_with("runtime.") && !name.contains(".gowrap"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn goroutines_are_where_go_says_that_they_wait() {
    // With symbols, and as programs are shipped.
    for options in [&[][..], &["-buildmode=pie"], &["-ldflags=-s"], &["-ldflags=-s", "-buildmode=pie"]] {
        let Some(program) = build(options) else { return };
        let (running, mut said) = start(&program);
        let process = stack(running.0.id());
        assert_eq!(process["goroutines_are_all"], true);
        for group in process["goroutines"].as_array().expect("there are goroutines") {
            assert_eq!(group["complete"], true, "{group}");
            let state = group["state"].as_str().expect("it has a state");
            for id in group["ids"].as_array().expect("they have numbers") {
                if let Some(theirs) = said.remove(&id.as_u64().expect("it is a number")) {
                    assert_eq!((state.to_owned(), functions(group)), theirs, "{options:?}, goroutine {id}");
                }
            }
        }
        assert!(said.is_empty(), "{options:?}: not found: {said:?}");
    }
}

#[test]
fn equal_stacks_are_one_group_and_deep_ones_are_whole() {
    let Some(program) = build(&[]) else { return };
    let (running, _) = start(&program);
    let process = stack(running.0.id());
    let groups = process["goroutines"].as_array().expect("there are goroutines");
    assert_eq!(groups[0]["ids"].as_array().map(Vec::len), Some(1000), "the largest is first");
    assert_eq!(functions(&groups[0]), ["main.receives"]);
    let deep = groups.iter().map(functions).max_by_key(Vec::len).expect("there are groups");
    assert_eq!(deep.iter().filter(|name| *name == "main.deep").count(), 301);
}

#[test]
fn other_programs_have_no_goroutines() {
    let process = stack(std::process::id());
    assert!(process["goroutines"].is_null() && process["goroutines_error"].is_null(), "{process}");
}
