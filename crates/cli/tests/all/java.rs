//! Functions of Java programs, without an option of Java: recordings compared with the programs' own measurements, and `plumb stack` with Java's own stack
//! traces.
//!
//! Needs a JDK of version 11 or newer that runs a source file; without it, a test prints so and is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hanging::{Frame, hanging, script_frames, stacks, started};
use crate::python::{alone, counts, functions, plumb, program, spent, text, way};
use plumb_fixtures::{Requirement, needs};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// The command that runs a program.
fn java(name: &str) -> Command {
    let mut command = Command::new("java");
    command.arg(program(name));
    command
}

/// Inlined functions, one with a lambda and one with an exception, and one that the virtual machine calls.
#[test]
fn functions_of_java_have_the_shares_that_the_program_measured() {
    if !needs(Requirement::Perf) || !needs(Requirement::Java) {
        return;
    }
    let _alone = alone();
    let folder = folder("java-shares");
    for capture in ["auto", "perf"] {
        let source = program("Shares.java");
        let output = plumb(&folder, &["record", "--capture", capture, "--", "java", &source]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("without names") && !said.contains("-XX:"), "{said}");
        let measured = spent(&text(&output.stdout));
        assert_eq!(measured.len(), 4, "{measured_names:?}", measured_names = measured.keys());
        let functions = functions(&measured);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let (mut all, mut without_root) = (0, 0);
        for (stack, samples) in counts(&text(&plumb(&folder, &["fold"]).stdout)) {
            if stack.contains("Shares.") {
                all += samples;
                let is_whole = ["clone3", "start_thread"].iter().any(|root| stack.contains(root));
                let has_callers = stack.contains("JavaMain") && stack.contains("Shares.main");
                without_root += if is_whole && has_callers { 0 } else { samples };
                *found.entry(way(&stack, &functions)).or_default() += samples;
            }
        }
        println!("{capture}: {found:#?}");
        assert!(without_root * 100 <= all, "{without_root} of {all} stacks end before their root");
        for (function, spent) in &measured {
            // The number of samples is random: three standard deviations of the smallest share.
            spent.hold(function, found.get(function).copied().unwrap_or(0), 40.0, 0.1);
        }
    }
}

#[test]
fn functions_and_lines_are_those_that_java_tells() {
    if !needs(Requirement::Ptrace) || !needs(Requirement::Java) {
        return;
    }
    let (target, said) = hanging(&mut java("Hangs.java"), 5);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let process = stacks(&folder("java-stack"), &target);
    assert!(process["interpreter"].as_str().is_some_and(|name| name.starts_with("Java ")), "{process}");
    let threads = process["threads"].as_array().expect("there are threads");
    let is_own = |(name, ..): &Frame| name.starts_with("Hangs") && !name.contains("$$Lambda");
    let of_thread = |thread| script_frames(thread).into_iter().filter(is_own).collect::<Vec<_>>();
    let found = threads.iter().map(of_thread).max_by_key(Vec::len).expect("there is a thread");
    assert_eq!(found, said);
}

/// A map that the JVM writes when asked does not take the place of what plumb reads itself.
#[test]
fn a_jvm_that_runs_is_named_without_an_option() {
    if !needs(Requirement::Perf) || !needs(Requirement::Java) {
        return;
    }
    let _alone = alone();
    let folder = folder("java-names");
    let (target, _) = started(&mut java("Spins.java"), "spins");
    let output = plumb(&folder, &["record", "--duration", "1", "-p", &target.pid()]);
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("without names") && !said.contains("jcmd"), "{said}");
    let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
    let all: u64 = folded.values().sum();
    let named = folded
        .iter()
        .filter(|(stack, _)| way(stack, &["Spins.main", "Spins.spins"]) == "Spins.main;Spins.spins");
    let named: u64 = named.map(|(_, samples)| samples).sum();
    assert!(named * 100 >= all * 90, "{named} of {all}: {folded:?}");
}
