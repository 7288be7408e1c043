//! `plumb stat`: its figures equal a program's own measurements.
//!
//! Needs a C compiler; kernel counts need root and BPF. Without them, a test prints so and is skipped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_fixtures::Pmu;
use plumb_fixtures::{Requirement, compiles, copy_program, needs, skip};
use serde_json::Value;

fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs")
}

/// Runs plumb with these signals ignored or not: by default they are as in the test, whose background job in a script ignores them.
/// `None`, after saying why, without Python.
fn plumb_where(ignored: bool, signals: [&str; 2], folder: &Path, arguments: &[&str]) -> Option<Output> {
    let script = "import os, signal, sys\n\
                  for name in sys.argv[2].split(): signal.signal(getattr(signal, name), getattr(signal, sys.argv[1]))\n\
                  os.execv(sys.argv[3], sys.argv[3:])";
    let mut command = Command::new("python3");
    command.args(["-c", script, if ignored { "SIG_IGN" } else { "SIG_DFL" }, &signals.join(" ")]);
    command.arg(env!("CARGO_BIN_EXE_plumb")).args(arguments).current_dir(folder).stdin(Stdio::null());
    // python3 may be a shell script that complains about locales.
    command.env("LC_ALL", "C");
    command.output().map_err(|error| skip(Requirement::Python, format_args!("python3: {error}"))).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with the program.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stat-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/spends.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(folder.join("spends")).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    Some(folder)
}

fn json(output: &Output) -> Value {
    let said = text(&output.stderr);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Signals sent by a terminal.
const SIGNALS: [&str; 2] = ["SIGINT", "SIGQUIT"];

fn median(result: &Value, name: &str) -> f64 {
    result["metrics"][name]["median"].as_f64().unwrap_or_else(|| panic!("there is {name}: {result}"))
}

#[test]
fn figures_are_those_that_a_program_measures_of_itself() {
    let Some(folder) = folder("truth") else { return };
    let output = plumb(&folder, &["stat", "--json", "--", "./spends", "400", "5000"]);
    let result = json(&output);
    let measured: Vec<f64> =
        text(&output.stdout).split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [user, calls_ns, calls] = measured[..] else { panic!("{measured:?}") };

    let faults = median(&result, "minor_faults");
    assert!((5000.0..5500.0).contains(&faults), "{faults}");
    let memory = median(&result, "max_rss_bytes");
    // The pages, a buffer of a MiB, and the usual memory of a program.
    assert!((21.5e6..27e6).contains(&memory), "{memory}");
    let cpu = median(&result, "cpu_ns");
    assert!(cpu >= (user + calls_ns) * 0.99, "{cpu} of {measured:?}");
    assert!(cpu <= (user + calls_ns) * 1.1 + 50e6, "{cpu} of {measured:?}");
    if !needs(Requirement::Bpf) {
        return;
    }
    assert!(result["missing"].is_null(), "{}", result["missing"]);
    let counted = median(&result, "calls");
    assert!((calls..calls + 300.0).contains(&counted), "{counted} of {calls}");
    // Besides the calls, the kernel's time includes faults, start and exit: the rest of the sum.
    let (low, high) = (calls_ns / cpu, (cpu - user) / cpu);
    let share = result["modes"]["kernel_share"].as_f64().expect("it was sampled");
    let noise = 3.0 * (share * (1.0 - share) / result["modes"]["samples"].as_f64().unwrap()).sqrt();
    assert!((low - noise - 0.02..high + noise + 0.02).contains(&share), "{share} of {low}..{high}");
    let threads = result["threads"].as_array().expect("there are threads");
    for (name, truth) in [("computes", user), ("asks", calls_ns)] {
        let own = threads.iter().find(|thread| thread["comm"] == name).expect(name);
        let cpu = own["cpu_ns"].as_f64().expect("a number");
        assert_eq!(own["threads"], 1);
        assert!((truth..truth * 1.02 + 3e6).contains(&cpu), "{name}: {cpu} of {truth}");
    }
}

#[test]
fn runs_have_medians_and_intervals() {
    let Some(folder) = folder("runs") else { return };
    let output = plumb(&folder, &["stat", "-n", "6", "--warmup", "1", "--json", "--", "./spends", "10"]);
    assert_eq!(text(&output.stdout).lines().count(), 7, "each run prints");
    let result = json(&output);
    let cpu = &result["metrics"]["cpu_ns"];
    let values: Vec<f64> =
        cpu["values"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    assert_eq!(values.len(), 6);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    assert_eq!((cpu["low"].as_f64(), cpu["high"].as_f64()), (Some(least), Some(most)));
    assert_eq!(cpu["confidence"], 0.96875);

    let output = plumb(&folder, &["stat", "--runs", "3", "--silent", "--", "./spends", "10"]);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "");
    assert!(said.contains("3 runs: medians [range of 3 runs: 75% confidence for the median; -n 6"), "{said}");
    assert!(said.contains("user+sys"), "{said}");
}

#[test]
fn the_command_decides_on_the_exit_status() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = plumb(folder, &["stat", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("1 of 1 runs failed: exit status 3"), "{}", text(&output.stderr));
    let output = plumb(folder, &["stat", "--", "no-such-command-anywhere"]);
    assert_eq!(output.status.code(), Some(127));
    let output =
        plumb(folder, &["stat", "-o", "stat.json", "--json", "--", "A=1", "sh", "-c", "test $A = 1"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let written = std::fs::read_to_string(folder.join("stat.json")).expect("it was written");
    assert!(serde_json::from_str::<Value>(&written).is_ok(), "{written}");
}

#[test]
fn no_run_follows_one_that_was_interrupted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["stat", "-n", "5", "--json", "--", "sh", "-c", "echo x; kill -INT $$"];
    let Some(output) = plumb_where(false, SIGNALS, folder, &arguments) else { return };
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(130), "x\n".to_owned()));
    assert_eq!(json(&output)["runs"], 1);
}

/// As nohup(1) and shells do, which ignore signals on behalf of their children.
#[test]
fn the_command_ignores_the_signals_that_were_ignored_before_plumb() {
    let Some(folder) = folder("signals") else { return };
    for ignored in [false, true] {
        let arguments = ["stat", "--silent", "-o", "stat", "--", "sh", "-c"];
        // The kernel's view of the command, which is a program without handlers.
        let script = "exec cat /proc/self/status > seen";
        let Some(output) = plumb_where(ignored, SIGNALS, &folder, &[&arguments[..], &[script]].concat())
        else {
            return;
        };
        assert!(output.status.success(), "{}", text(&output.stderr));
        let status = std::fs::read_to_string(folder.join("seen")).expect("it was written");
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).expect("the kernel has it");
        let set = u64::from_str_radix(line, 16).expect("a set of signals");
        // Signal number n is bit n - 1: SIGINT is 2, SIGQUIT 3.
        assert_eq!(set >> 1 & 0b11, if ignored { 0b11 } else { 0 }, "{ignored}: {line}");
    }
}

/// With a simulation that counts 2.6 cycles per nanosecond and 1.5 instructions per cycle, and without any counters.
#[test]
fn counters_are_shown_where_there_are_any() {
    if !needs(Requirement::Perf) {
        return;
    }
    let Some(folder) = folder("counters") else { return };
    let stat = |pmu: Pmu| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["stat", "--json", "--silent", "--", "./spends", "300", "100"]);
        let output = command.env("LD_PRELOAD", pmu.preload(&folder)?).current_dir(&folder).output();
        let output = output.expect("plumb runs");
        Some((json(&output), text(&output.stderr)))
    };
    let Some((with, said)) = stat(Pmu::Double) else { return };
    let (cycles, cpu) = (median(&with, "cycles"), median(&with, "cpu_ns"));
    // The simulation continues if the host takes the CPU away, the accounting may not.
    assert!(cycles >= 2.6 * cpu * 0.95, "{cycles} cycles in {cpu} ns: {said}");
    let each = median(&with, "instructions") / cycles;
    assert!((1.45..1.55).contains(&each), "{each}");
    let (without, said) = stat(Pmu::Hidden).expect("the library compiles as the other did");
    assert!(without["metrics"]["cycles"].is_null() && !said.contains("instructions"), "{said}");
}

/// Without privileges, the kernel's accounting for all users is shown, and the missing figures are named.
#[test]
fn without_rights_the_split_is_not_guessed() {
    /// The user nobody, on every distribution.
    const NOBODY: u32 = 65534;
    let Some(folder) = folder("nobody") else { return };
    // A copy that user nobody can reach.
    let reachable = std::env::temp_dir().join(format!("plumb-stat-{}", std::process::id()));
    std::fs::create_dir_all(&reachable).expect("a folder");
    let program = reachable.join("plumb");
    copy_program(env!("CARGO_BIN_EXE_plumb"), &program);
    copy_program(folder.join("spends"), reachable.join("spends"));
    let mut command = Command::new(&program);
    command.args(["stat", "--", "./spends", "20", "100"]).current_dir(&reachable).stdin(Stdio::null());
    let output = command.uid(NOBODY).gid(NOBODY).output();
    let _ = std::fs::remove_dir_all(&reachable);
    let Ok(output) = output else {
        skip(Requirement::Root, "not root, or no copy can be run");
        return;
    };
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("user+sys") && said.contains("page faults"), "{said}");
    assert!(said.contains("not known: the kernel's share") && said.contains("root"), "{said}");
    assert!(!said.contains("in the kernel  ") && !said.contains("tick says"), "{said}");
}
