//! Records Python programs of the tests, and reads their own figures and plumb's.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_fixtures::{Requirement, needs};

/// One recording at a time: two CPUs can't handle more.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.output().expect("plumb runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn program(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).to_string_lossy().into_owned()
}

/// Records a program with stacks unwound in the kernel. Returns its output; `None`, after saying why, if that is not possible.
pub fn record(folder: &Path, options: &[&str], words: &[&str]) -> Option<String> {
    if !needs(Requirement::Bpf) {
        return None;
    }
    let output = plumb(folder, &[&["record", "--capture", "bpf"], options, &["--"], words].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("not walked in the kernel"), "{said}");
    println!("{said}");
    Some(text(&output.stdout))
}

/// Time that a program spent in a function, by its own clocks, in nanoseconds.
///
/// If a hypervisor takes the CPU away, the sampling clock continues and the thread's clock stops: samples are between the two times.
pub struct Spent {
    processor: u64,
    elapsed: u64,
}

impl Spent {
    /// Fails if the number of samples, at 999 a second, differs by more than `slack` samples and this share.
    pub fn hold(&self, name: &str, samples: u64, slack: f64, share: f64) {
        let expected = |nanoseconds: u64| nanoseconds as f64 * 999.0 / 1e9;
        let (least, most) = (expected(self.processor), expected(self.elapsed));
        let range = least * (1.0 - share) - slack..=most * (1.0 + share) + slack;
        assert!(range.contains(&(samples as f64)), "{name}: {samples} samples of {least:.1} to {most:.1}");
    }
}

/// Parses lines with the two times at the end, by the text before them.
pub fn spent(text: &str) -> BTreeMap<String, Spent> {
    let number = |word: &str| word.parse().expect("it is a number");
    let line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let (Some(elapsed), Some(processor), Some(name)) = (words.next(), words.next(), words.next()) else {
            panic!("no times: {line}");
        };
        (name.to_owned(), Spent { processor: number(processor), elapsed: number(elapsed) })
    };
    text.lines().map(line).collect()
}

/// The functions of measured call paths, each once.
pub fn functions(measured: &BTreeMap<String, Spent>) -> Vec<&str> {
    let all: BTreeSet<&str> = measured.keys().flat_map(|way| way.split(';')).collect();
    all.into_iter().collect()
}

/// Parses lines with a number at the end, summed up by the text before it.
pub fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (way, count) = line.rsplit_once(' ').expect("a number is at the end");
        *counts.entry(way.to_owned()).or_default() += count.parse::<u64>().expect("it is a number");
    }
    counts
}

/// The functions of the program in a folded stack, from the outermost of `ways` to the innermost.
pub fn way(stack: &str, functions: &[&str]) -> String {
    stack.split(';').filter(|name| functions.contains(name)).collect::<Vec<_>>().join(";")
}
