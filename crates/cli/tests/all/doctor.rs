//! `plumb doctor` on the machine that it runs on: what it says is JSON as documented, and nothing stays behind.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::spun::{compiled, folder, text};
use plumb_fixtures::{Requirement, needs, needs_command, skip};

/// Directories below `folder` whose name begins like this.
fn called(folder: &Path, begin: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .flat_map(|entry| {
            let own = entry.file_name().to_str().filter(|name| name.starts_with(begin)).map(str::to_owned);
            own.into_iter().chain(called(&entry.path(), begin)).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn everything_is_tried_and_nothing_left() {
    let mut plumb = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let child = plumb.args(["doctor", "--json"]).stdout(Stdio::piped()).spawn().expect("plumb runs");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(json["schema"].as_str().is_some_and(|schema| schema.starts_with("1.")), "{json}");
    let programs = json["programs"].as_array().expect("each feature was tried");
    let refused = |entry: &&serde_json::Value| {
        entry["says"].as_str().unwrap_or_default().starts_with("the kernel refuses the program")
    };
    let refused: Vec<_> = programs.iter().filter(refused).collect();
    assert!(refused.is_empty(), "docs/kernels.md names no kernel that refuses a program: {refused:?}");
    assert_eq!(called(Path::new("/sys/fs/cgroup"), &format!("plumb-{pid}-")), [""; 0]);
}

/// Root of a user namespace is an ordinary user.
#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let namespace = ["--user", "--map-root-user"];
    let may = Command::new("unshare").args(namespace).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        skip(Requirement::Unprivileged, "no user namespace can be made");
        return;
    }
    let plumb = Command::new("unshare")
        .args(namespace)
        .args([env!("CARGO_BIN_EXE_plumb"), "doctor", "--json"])
        .output()
        .expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&plumb.stdout).expect("it is JSON");
    assert_eq!(json["host"]["is_in_user_namespace"], true);
    assert_eq!(json["host"]["capabilities"], serde_json::json!([]));
    let findings = json["findings"].as_array().expect("there are findings");
    let says = |what: &str| findings.iter().find(|finding| finding["what"] == what).map(|f| &f["says"]);
    assert!(says("BPF").is_some_and(|says| says.to_string().contains("user namespace")), "{findings:#?}");
}

#[test]
fn a_recording_has_findings_and_no_host() {
    let folder = std::env::temp_dir().join(format!("plumb-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let file = folder.join("a.folded");
    std::fs::write(&file, "main;work 3\n").expect("it is writable");
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(["doctor", "--json"]).arg(&file).output();
    let output = output.expect("plumb runs");
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let keys: BTreeSet<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(["findings", "plumb", "schema", "subject", "version"]));
}

/// A probe of another tool.
struct Probe(String);

impl Probe {
    const EVENTS: &str = "/sys/kernel/tracing/uprobe_events";

    /// `None`, after skipping, if it can't be set.
    fn set(program: &Path, function: &str, address: u64) -> Option<Self> {
        use std::io::Write as _;
        let probe = Self(format!("plumbdoctor{}/{function}", std::process::id()));
        let line = format!("p:{} {}:{address:#x}\n", probe.0, program.display());
        let events = std::fs::OpenOptions::new().append(true).open(Self::EVENTS);
        if let Err(error) = events.and_then(|mut events| events.write_all(line.as_bytes())) {
            skip(Requirement::Root, format_args!("{}: {error}", Self::EVENTS));
            return None;
        }
        std::fs::write(probe.enable(), "1").expect("it can be enabled");
        Some(probe)
    }

    fn enable(&self) -> String {
        format!("/sys/kernel/tracing/events/{}/enable", self.0)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        use std::io::Write as _;
        let _ = std::fs::write(self.enable(), "0");
        let events = std::fs::OpenOptions::new().append(true).open(Self::EVENTS);
        // In one call: each is a command.
        let _ = events.and_then(|mut events| events.write_all(format!("-:{}\n", self.0).as_bytes()));
    }
}

/// Returns text and remedy of doctor's finding on uprobes.
fn uprobes() -> Option<(String, String)> {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(["doctor", "--json"]).output();
    let json: serde_json::Value =
        serde_json::from_slice(&output.expect("plumb runs").stdout).expect("it is JSON");
    let all = json["findings"].as_array().expect("there are findings");
    let found = all.iter().find(|finding| finding["what"] == "uprobes")?;
    let text = |key: &str| found[key].as_str().expect("a text").to_owned();
    Some((text("says"), text("remedy")))
}

/// Starts the program, which calls the function; returns whether the kernel single-stepped. It runs on until its input ends.
fn started(mut command: Command) -> (Child, bool) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let line = output.lines().next().expect("it prints a line").expect("it is text");
    (child, line == "stepped")
}

/// Address of each function of the program, which is its offset in the file.
fn functions(program: &Path) -> Vec<(String, u64)> {
    let names = Command::new("nm").arg(program).output().expect("nm runs");
    let names = text(&names.stdout);
    let words = names.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = words.filter_map(|words| {
        let [address, _, name] = words[..] else { return None };
        let address = u64::from_str_radix(address, 16).ok()?;
        name.starts_with("begins_").then(|| (name.to_owned(), address))
    });
    found.collect()
}

/// The kernel is the reference: it maps an area into a process when it single-steps the first time.
#[test]
fn probes_that_the_kernel_steps_are_named_with_a_better_place() {
    let folder = folder("doctor-probes");
    if !cfg!(target_arch = "x86_64")
        || !needs(Requirement::Root)
        || !needs_command(Requirement::Binutils, "nm")
        || !compiled(&folder, "tests/programs/beginnings.c", "beginnings")
    {
        return;
    }
    let program = folder.join("beginnings");
    let mut remedies = 0;
    for (function, address) in functions(&program) {
        let run = || {
            let mut command = Command::new(&program);
            command.arg(&function);
            started(command)
        };
        let Some(probe) = Probe::set(&program, &function, address) else { return };
        let (mut child, is_stepped) = run();
        let (says, remedy) = uprobes().expect("a probe is set");
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        let named = format!("beginnings:{function} ({})", probe.0);
        let is_unknown = function == "begins_long_nop";
        assert!(!says.contains(&named) || is_stepped, "{function} is emulated: {says}");
        assert!(says.contains(&named) || !is_stepped || is_unknown, "{function} is stepped: {says}");
        drop(probe);
        let better = remedy.split(&format!("beginnings:{function}+")).nth(1);
        let better = better.map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
        let Some(Some(better)) = better else { continue };
        let better: u64 = better.parse().expect("a number");
        let Some(_probe) = Probe::set(&program, &function, address + better) else { return };
        let (mut child, is_stepped) = run();
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        assert!(!is_stepped, "{function}+{better} is emulated");
        remedies += 1;
    }
    assert!(remedies > 1, "endbr64, test and sub are followed by what the kernel emulates");
}

/// Perf events and BPF programs set probes that no list has.
#[test]
fn probes_that_are_in_no_list_are_found_in_the_processes() {
    let folder = folder("doctor-unlisted");
    if !cfg!(target_arch = "x86_64")
        || !needs(Requirement::Root)
        || !needs(Requirement::Perf)
        || !compiled(&folder, "tests/programs/beginnings.c", "beginnings")
    {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.current_dir(&folder).args(["record", "-q", "-e", "uprobe:./beginnings:begins_load"]);
    command.args(["--", "./beginnings", "begins_load"]).stderr(Stdio::null());
    let (mut child, is_stepped) = started(command);
    let said = uprobes();
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    assert!(is_stepped);
    let (says, _) = said.expect("a probe is set");
    assert!(says.contains("beginnings:begins_load"), "{says}");
}
