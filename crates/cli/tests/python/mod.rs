//! Recording Python programs of the tests, and reading what they and plumb print of their functions.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_fixtures::{Requirement, needs};

/// One recording at a time: two processors have no room for more.
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

/// Records a program with stacks walked in the kernel. What it printed; `None`, having said why, if that can't be done.
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

/// Lines with a number at the end, summed up by what is before it.
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
