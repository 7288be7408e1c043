//! Stacks through functions whose returns another tool traces: the kernel has replaced their return addresses.
//!
//! The calls in tests/programs/uretprobed.c are the truth. Needs root, uprobes in tracefs and gcc; where one is missing, a test says so and
//! is skipped.

use std::fs::{OpenOptions, create_dir_all, read_to_string};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::target::Target;
use plumb_fixtures::{Requirement, needs, skip};
use serde_json::Value;

/// Places where tracefs may be mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A return probe; removed when dropped.
struct ReturnProbe {
    tracefs: &'static Path,
    /// Group and name.
    name: String,
}

impl ReturnProbe {
    /// Puts a return probe on a function of a program. `None`, with a notice, where that is not possible.
    fn attach(program: &Path, function: &str) -> Option<ReturnProbe> {
        let mut usual = TRACEFS.iter().map(Path::new);
        let Some(tracefs) = usual.find(|path| path.join("uprobe_events").exists()) else {
            skip(Requirement::Kernel, "tracefs is not mounted, or without uprobes");
            return None;
        };
        let nm = Command::new("nm").arg(program).output().expect("nm runs");
        let symbols = String::from_utf8_lossy(&nm.stdout).into_owned();
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {function}"))).expect("it is there");
        // The code of a position-independent program is at the same offset in its file.
        let offset = line.split(' ').next().expect("an address");
        let stem = program.file_name().and_then(|name| name.to_str()).expect("it has a name");
        let name = format!("plumb_test_{}/{stem}_{function}", std::process::id());
        let probe = ReturnProbe { tracefs, name };
        let definition = format!("r:{} {}:0x{offset}\n", probe.name, program.display());
        let made = probe.tell(&definition).and_then(|()| probe.enable("1"));
        if let Err(error) = made {
            skip(Requirement::Kernel, format_args!("no return probe can be made: {error}"));
            return None;
        }
        Some(probe)
    }

    fn tell(&self, text: &str) -> std::io::Result<()> {
        let mut events = OpenOptions::new().append(true).open(self.tracefs.join("uprobe_events"))?;
        events.write_all(text.as_bytes())
    }

    fn enable(&self, state: &str) -> std::io::Result<()> {
        std::fs::write(self.tracefs.join("events").join(&self.name).join("enable"), state)
    }
}

impl Drop for ReturnProbe {
    fn drop(&mut self) {
        // Failing here would hide the failure that came before.
        let _ = self.enable("0");
        let _ = self.tell(&format!("-:{}\n", self.name));
    }
}

/// Compiles the program and puts a return probe on its function.
fn probed(name: &str) -> Option<(PathBuf, ReturnProbe)> {
    if !(needs(Requirement::Root) && needs(Requirement::Bpf) && needs(Requirement::Ptrace)) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("uretprobes");
    create_dir_all(&folder).expect("the folder for tests can be written");
    let program = folder.join(name);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/uretprobed.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pie", "-fPIE", "-o"]);
    assert!(gcc.arg(&program).arg(source).status().expect("gcc runs").success());
    let probe = ReturnProbe::attach(&program, "probed")?;
    Some((program, probe))
}

/// The calls of the program, innermost first.
const CALLS: &str = "leaf probed between probed outer main";

#[test]
fn a_stopped_thread_has_its_callers_beyond_the_probe() {
    let Some((program, _probe)) = probed("waits") else { return };
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    reader.read_line(&mut line).expect("it says something");
    let target = Target(child);
    // The kernel shows its code for the probes in the process.
    let maps = read_to_string(format!("/proc/{}/maps", target.pid())).expect("it runs");
    assert!(maps.contains("[uprobes]"), "the probe was hit: {maps}");
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["stack", "--json", "-p", &target.pid()])
        .output()
        .expect("plumb runs");
    let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let thread = &all["processes"][0]["threads"][0];
    let frames = thread["frames"].as_array().expect("there are frames");
    let names: Vec<&str> = frames.iter().map(|frame| frame["symbol"].as_str().unwrap_or("?")).collect();
    assert!(names.join(" ").contains(CALLS), "{names:?}");
    assert_eq!(thread["complete"], true, "{names:?}");
    assert!(frames.iter().all(|frame| frame["trust"] != "guessed"), "{frames:?}");
}

/// Records the program: the number of samples in its leaf, of those with all callers, of those that name the probe, and the command's words.
fn recorded(program: &Path, options: &[&str]) -> (u64, u64, u64, String) {
    let folder = program.parent().expect("it is in a folder");
    let command = program.to_str().expect("a plain path");
    let profile = format!("{command}.plumb");
    let plumb = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let output =
            command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("plumb runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [_, said] = plumb(&[&["record"], options, &["-o", &profile, "--", command, "1"]].concat());
    let [folded, _] = plumb(&["fold", &profile]);
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0_u64);
    let of = |is: &dyn Fn(&str) -> bool| folded.lines().filter(|line| is(line)).map(count).sum::<u64>();
    let is_in_leaf = |line: &str| line.contains("leaf") || line.contains("no user stack");
    let is_whole = |line: &str| line.contains("main;outer;probed;between;probed;leaf");
    let is_named = |line: &str| is_in_leaf(line) && line.contains("replaced by a uretprobe");
    (of(&is_in_leaf), of(&is_whole), of(&is_named), said)
}

#[test]
fn recorded_stacks_have_their_callers_or_the_reason_and_remedy() {
    let Some((program, _probe)) = probed("spins") else { return };
    let (all, whole, _, said) = recorded(&program, &["--capture", "bpf"]);
    // Stacks of the first moments may be copied, while tables are made.
    assert!(all > 0 && whole * 10 >= all * 9, "{whole} of {all}: {said}");
    let (all, whole, named, said) = recorded(&program, &["--capture", "perf"]);
    assert!(all > 0 && whole + named == all, "{whole} and {named} of {all}: {said}");
    assert!(said.contains("asks the kernel for the return address"), "{said}");
}

/// A program whose every stack ends at the probe has nevertheless begun: its stacks are not those of the program before the exec.
#[test]
fn calls_below_the_probe_have_their_callers_or_the_reason() {
    let Some((program, _probe)) = probed("yields") else { return };
    for capture in ["bpf", "perf"] {
        let options = ["--capture", capture, "-e", "syscalls:sys_enter_sched_yield"];
        let (all, whole, named, said) = recorded(&program, &options);
        assert!(all > 100 && whole + named == all, "{capture}: {whole} and {named} of {all}: {said}");
        assert!(capture == "perf" || whole * 10 >= all * 9, "{whole} of {all}: {said}");
    }
}
