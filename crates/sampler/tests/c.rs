//! Tests of the C API: `programs/sampled.c`, linked with the static library, samples itself and reports the results, which are compared with its own
//! clocks, its linker sections and its own `malloc`.
//!
//! Requires gcc.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sampler");
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn gcc(name: &str, options: &[&str]) -> PathBuf {
    let made = folder().join(name.replace(".c", ""));
    // The library is in the directory of this test.
    let deps = std::env::current_exe().expect("it runs");
    let libraries = deps.parent().expect("target/PROFILE/deps");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fomit-frame-pointer", "-Wall", "-Werror", "-pthread", "-o"])
        .arg(&made)
        .arg(source(name));
    gcc.arg(format!("-I{}/include", env!("CARGO_MANIFEST_DIR"))).arg("-L").arg(libraries).args(options);
    assert!(gcc.status().expect("gcc runs").success(), "{name}");
    made
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| gcc("sampled.c", &["-rdynamic", "-l:libplumb_sampler.a", "-ldl", "-lm"]))
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new(program()).args(arguments).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{:?}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The numbers, by the word before each; the last one if a word occurs several times.
fn numbers(text: &str) -> HashMap<&str, f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.chunks_exact(2).map(|pair| (pair[0], pair[1].parse().expect("a number"))).collect()
}

/// Compares the samples with the times that the program measured itself.
fn check_shares(text: &str) {
    let found = numbers(text);
    let time: f64 = ["time_a", "time_b", "time_c"].iter().map(|name| found[name]).sum();
    for name in ["a", "b", "c"] {
        let truth = found[&*format!("time_{name}")] / time;
        let share = found[&*format!("hot_{name}")] / found["weight"];
        // Four standard deviations at this number of samples, plus the calls that read the clock.
        let allowed = 4.0 * (truth * (1.0 - truth) / found["samples"]).sqrt() + 0.01;
        assert!((share - truth).abs() < allowed, "{name}: {share} of samples, {truth} of time\n{text}");
    }
    assert_eq!(found["rooted"], found["samples"], "{text}");
    assert_eq!(found["dropped"], 0.0);
    assert_eq!(found["allocations_at_work"], 0.0, "{text}");
    assert!(found["allocations"] > 100.0, "they are counted at all");
    let rate = found["weight"] / time;
    assert!((800.0..1200.0).contains(&rate), "{rate} a second\n{text}");
}

#[test]
fn eight_busy_threads_have_their_shares_and_whole_stacks() {
    check_shares(&run(&["shares"]));
}

#[test]
fn so_they_have_by_posix_timers() {
    check_shares(&run(&["posix"]));
}

#[test]
fn threads_may_end_while_registered() {
    let text = run(&["ends"]);
    let found = numbers(&text);
    assert_eq!(found["registered"], 0.0);
    assert_eq!(found["samples"], found["signals"]);
    assert!(found["samples"] > 100.0, "{text}");
}

#[test]
fn libraries_may_come_and_go() {
    let plugin = gcc("plugin.c", &["-shared", "-fPIC"]);
    let text = run(&["plugin", plugin.to_str().expect("it is text")]);
    let (mut all, mut complete) = (0.0, 0.0);
    for line in text.lines() {
        let found = numbers(line);
        all += found["plugin"];
        complete += found["complete"];
    }
    assert!(all > 30.0 && all == complete, "{text}");
}

#[test]
fn a_forked_child_is_on_its_own() {
    let text = run(&["fork"]);
    let found = numbers(&text);
    assert_eq!(found["child"], 0.0, "{text}");
    assert!(found["after"] > found["before"] + 5.0, "the parent is sampled on: {text}");
}

#[test]
fn a_handler_that_was_there_gets_its_signals() {
    assert!(numbers(&run(&["shared"]))["signals"] > 5.0);
}

#[test]
fn what_finds_no_room_is_counted() {
    let text = run(&["full"]);
    let found = numbers(&text);
    assert!(found["dropped"] > 20.0 && found["samples"] > 3.0, "{text}");
}

#[test]
fn stacks_are_written_as_text() {
    let text = run(&["text"]);
    assert!(text.contains("main;burn;hot_a") || text.contains(";hot_a "), "{text}");
    assert!(text.contains("\nmaps:\n") && text.contains("sampled") && text.contains(" root *0x"), "{text}");
}
