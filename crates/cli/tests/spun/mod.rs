//! A recording of a small program, for tests of readers and writers of other formats.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// Runs plumb in a directory.
pub fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs")
}

/// Runs plumb with a hundred more environment variables, which make getenv slower in its command.
pub fn plumb_among_variables(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.envs((0..100).map(|number| (format!("SETTING_{number}"), "value")));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs")
}

/// Runs plumb, which has to succeed.
pub fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = plumb(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The empty directory of a test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// Whether this user may record their own programs; skips the test if not.
pub fn may_record() -> bool {
    needs(Requirement::Perf)
}

/// Whether samples include kernel frames for this user's programs; skips the test if not.
pub fn sees_kernel() -> bool {
    needs(Requirement::KernelSamples)
}

/// Compiles a program of `tests/programs` or `bench` in a directory; false, after skipping, without a compiler.
pub fn compiled(folder: &Path, source: &str, program: &str) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut compiler = Command::new("cc");
    compiles(compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(folder.join(program)).arg(source))
}

/// A directory with the recording of a program that works for a while.
pub fn recorded(name: &str) -> Option<PathBuf> {
    let folder = folder(name);
    if !may_record() || !compiled(&folder, "tests/programs/stacks.c", "stacks") {
        return None;
    }
    succeeds(&folder, &["record", "--quiet", "--", "./stacks"]);
    Some(folder)
}

/// The stacks of a recording, root first, with their numbers of samples.
pub fn folded(folder: &Path, file: &str) -> Vec<(String, u64)> {
    let text = succeeds(folder, &["fold", file]);
    let stack = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').expect("a line of folded stacks");
        (stack.to_owned(), count.parse().expect("a count"))
    };
    text.lines().map(stack).collect()
}

/// Functions of that program.
pub const FUNCTIONS: [&str; 6] = ["main", "fib", "busy", "mixed", "asks", "worker"];

/// By function: self weight, total weight, and number of samples with the function as leaf.
pub type Spent = HashMap<String, (u64, u64, u64)>;

/// The report on a file.
pub fn reported(folder: &Path, file: &str) -> Spent {
    let output = succeeds(folder, &["report", "--json", file]);
    let report: Value = serde_json::from_str(&output).expect("it is JSON");
    let mut spent = Spent::new();
    for row in report["reports"][0]["rows"].as_array().expect("there are rows") {
        let name = row["sym"].as_str().expect("a name").to_owned();
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"));
        let sum = spent.entry(name).or_default();
        sum.0 += number("self_weight");
        sum.1 += number("children_weight");
        sum.2 += number("self_samples");
    }
    spent
}

/// Paths in a directory, and itself, that users who do not own them may access.
pub fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let mut waiting = vec![directory.to_owned()];
    let mut open = Vec::new();
    while let Some(path) = waiting.pop() {
        let metadata = std::fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).expect("it can be read").flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        }
        if metadata.mode() & 0o077 != 0 {
            open.push(path);
        }
    }
    open
}
