//! The fields of each `--json` output are exactly those listed in docs/json.md.
//!
//! A path on that page is like `rows[].name`: `[]` is each element of a list, `*` any key. Rows that begin with "only" list fields
//! missing in some runs; all others are always present.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// The page's version, also in the fields of all outputs.
const VERSION: u64 = 1;

/// This test's own directory, with a program that runs for a while.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("json-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/hot_habits.cpp");
    let mut compiler = Command::new("c++");
    compiler.args(["-O2", "-g", "-std=c++20", "-pthread", "-o"]).arg(folder.join("habits")).arg(source);
    compiles(&mut compiler).then_some(folder)
}

/// plumb's JSON output: one object, or one per line.
fn written(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("plumb runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect();
    let values = values.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"));
    assert!(!values.is_empty(), "{arguments:?}: {said}");
    for value in &values {
        assert_eq!(value["version"], VERSION, "{arguments:?}");
    }
    values
}

/// The paths of all fields except objects and lists.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // A dot in a key, such as a thread's name, is not a path separator.
                let key = key.replace('.', "_");
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                paths(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{path}[]"), found)),
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// A path on the page, and whether it is always present.
struct Documented {
    path: String,
    is_always: bool,
}

impl Documented {
    fn is(&self, path: &str) -> bool {
        let (mut documented, mut found) = (self.path.split('.'), path.split('.'));
        let same = (&mut documented).zip(&mut found).all(|(documented, found)| {
            documented == found
                || (documented == "*" && !found.contains('['))
                || (documented == "*[]" && found.ends_with("[]"))
        });
        same && self.path.split('.').count() == path.split('.').count()
    }
}

/// The fields that the page lists for a command.
fn documented(command: &str) -> Vec<Documented> {
    let page = include_str!("../../../../docs/json.md");
    let section = |title: &str| {
        let begin = page.split_once(&format!("\n## {title}\n")).expect("the page has the section").1;
        begin.split_once("\n## ").map_or(begin, |(section, _)| section)
    };
    let mut fields = Vec::new();
    for line in section(command).lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let is_always = !cells.last().is_some_and(|meaning| meaning.starts_with("only "));
        let names = cells[0].split('`').skip(1).step_by(2);
        fields.extend(names.map(|name| Documented { path: name.to_owned(), is_always }));
    }
    fields
}

/// Compares the page with the output of a command's runs; returns the differences.
fn differences(command: &str, runs: &[Vec<Value>]) -> String {
    let fields = documented(command);
    assert!(fields.len() > 3, "{command}");
    let mut found = BTreeSet::new();
    runs.iter().flatten().for_each(|value| paths(value, "", &mut found));
    let unknown = found.iter().filter(|path| !fields.iter().any(|field| field.is(path)));
    let comes_out = |field: &Documented| found.iter().any(|path| field.is(path));
    let absent = fields.iter().filter(|field| field.is_always && !comes_out(field));
    let unknown = unknown.map(|path| format!("{command}: {path} is not in docs/json.md\n"));
    let absent = absent.map(|field| format!("{command}: {} did not come out\n", field.path));
    unknown.chain(absent).collect()
}

/// A recording of the program.
fn record(folder: &Path, name: &str) {
    let status = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["record", "-q", "-o", name, "--", "./habits", "getenv-hot", "bad", "600"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()
        .expect("plumb runs");
    assert!(status.success());
}

#[test]
fn readers_write_the_fields_of_the_page() {
    if !needs(Requirement::Perf) || !needs(Requirement::Cc) {
        return;
    }
    let Some(folder) = folder("readers") else { return };
    for name in ["a.plumb", "b.plumb"] {
        record(&folder, name);
    }
    let mut wrong = String::new();
    let run = |arguments: &[&str]| written(&folder, arguments);
    wrong += &differences(
        "plumb report",
        &[
            run(&["report", "--json", "a.plumb"]),
            run(&["report", "--json", "--sort", "comm,pid,tid,exe,dso,sym,srcline", "a.plumb"]),
            run(&["report", "--json", "--top-down", "a.plumb"]),
            run(&["report", "--json", "--callers", "getenv", "a.plumb"]),
        ],
    );
    let loops = "for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; done";
    let short = run(&["procs", "--json", "--", "sh", "-c", loops]);
    assert_ne!(short[0]["advice"][0]["measured"][0]["what"], Value::Null, "{short:?}");
    wrong += &differences("plumb procs", &[run(&["procs", "--json", "a.plumb"]), short]);
    wrong += &differences("plumb annotate", &[run(&["annotate", "--json", "a.plumb", "getenv"])]);
    let by = |rows: &str| run(&["diff", "--json", "--by", rows, "a.plumb", "b.plumb"]);
    wrong += &differences("plumb diff", &["function", "line", "path", "syscall"].map(by));
    wrong += &differences("plumb explain", &[run(&["explain", "--json", "a.plumb"])]);
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn measurements_write_the_fields_of_the_page() {
    let all = [Requirement::Perf, Requirement::Bpf, Requirement::Cc, Requirement::Ptrace];
    if !all.into_iter().all(needs) {
        return;
    }
    let Some(folder) = folder("measurements") else { return };
    let mut wrong = String::new();
    let run = |arguments: &[&str]| written(&folder, arguments);
    let compared = run(&["compare", "--json", "--profile", "-n", "6", "true", "sh -c true"]);
    wrong += &differences("plumb compare", &[compared]);
    wrong += &differences("plumb stat", &[run(&["stat", "--json", "-o", "-", "--", "sh", "-c", "true"])]);
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let pid = sleeper.id().to_string();
    let stacks = run(&["stack", "--json", "-p", &pid]);
    sleeper.kill().and_then(|()| sleeper.wait()).expect("sleep ends");
    wrong += &differences("plumb stack", &[stacks]);
    wrong += &differences("plumb bench fork", &[run(&["bench", "fork", "--json", "--sizes", "1,2"])]);
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn system_calls_have_the_fields_of_the_page() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let Some(folder) = folder("calls") else { return };
    let mut wrong = String::new();
    let run = |arguments: &[&str]| {
        let program = ["--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do ls -R /usr/include >/dev/null; done"];
        written(&folder, &[arguments, &program].concat())
    };
    let slow =
        ["kernel", "--json", "--advice", "--", "dd", "bs=1", "count=300000", "if=/dev/zero", "of=bytes"];
    let advised = written(&folder, &slow);
    assert_ne!(advised[0]["advice"]["advice"][0]["measured"][0]["what"], Value::Null, "{advised:?}");
    wrong += &differences(
        "plumb kernel",
        &[
            run(&["kernel", "--json", "--stacks=3"]),
            run(&["kernel", "--json", "--calls", "--latency", "--per", "thread"]),
            run(&["kernel", "--json", "--advice"]),
            advised,
        ],
    );
    wrong += &differences(
        "plumb trace",
        &[
            run(&["trace", "--json"]),
            run(&["trace", "--json", "-e", "openat", "--stack"]),
            run(&["trace", "--json", "--summary"]),
            run(&["trace", "--json", "--histogram"]),
            run(&["trace", "--json", "--spikes"]),
        ],
    );
    assert!(wrong.is_empty(), "\n{wrong}");
}
