//! `plumb record --off-cpu`: off-CPU times equal the program's own measurements, with the reason as the leaf.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

use crate::spun;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::spun::{plumb, text};
use crate::target::Target;
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// A directory with the program.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = spun::folder(&format!("off-cpu-{name}"));
    spun::compiled(&folder, "tests/programs/waits.c", "waits").then_some(folder)
}

/// Duration of one of the program's functions in nanoseconds, and the upper bound of its run-queue wait.
struct Measured {
    lasted: u64,
    queued: Option<u64>,
}

/// Records the program; returns its measurements and plumb's messages. `None`: not possible here.
fn record(folder: &Path, options: &[&str]) -> Option<(Vec<Measured>, String)> {
    if !needs(Requirement::Bpf) {
        return None;
    }
    let output = plumb(folder, &[&["record", "--off-cpu"], options, &["--", "./waits", "150"]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let measured = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        Measured { lasted: numbers.next().expect("there is one"), queued: numbers.next() }
    };
    let measured = text(&output.stdout).lines().map(measured).collect();
    Some((measured, said))
}

/// Weight of an event in a function, callees included.
fn weight_of(report: &Value, event: &str, function: &str) -> u64 {
    let reports = report["reports"].as_array().expect("there are reports");
    let Some(report) = reports.iter().find(|report| report["event"] == event) else { return 0 };
    assert!(report["coverage_percent"].is_null(), "time off the processor covers none on it");
    assert_eq!(report["unit"], "ns");
    let rows = report["rows"].as_array().expect("there are rows");
    // A thread that waits for work is idle.
    let idle = report["idle_rows"].as_array().into_iter().flatten();
    let own = rows.iter().chain(idle).filter(|row| row["sym"] == function);
    own.map(|row| row["children_weight"].as_u64().expect("it is a number")).sum()
}

fn check(folder: &Path, measured: &[Measured]) {
    let report = plumb(folder, &["report", "--json", "--sort", "sym"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    for (function, truth) in ["sleeps", "takes_lock", "reads_pipe"].iter().zip(measured) {
        let (blocked, waited) =
            (weight_of(&report, "off-cpu", function), weight_of(&report, "run-queue", function));
        let (lasted, queued) = (truth.lasted, truth.queued.expect("it asks the kernel"));
        // The figure includes its own CPU time: a few milliseconds at most.
        let slack = lasted / 20 + 5_000_000;
        let off = blocked + waited;
        assert!(off <= lasted && off + slack >= lasted, "{function}: {off} of {lasted} ns");
        // Apart from run-queue waits it was blocked. On a busy machine that may be next to nothing.
        let told =
            format!("{function}: {blocked} blocked, {waited} waited of {lasted} ns, {queued} by the kernel");
        assert!(blocked + queued + slack >= lasted && waited <= queued + slack, "{told}");
    }
    let (waited, truth) = (weight_of(&report, "run-queue", "contends"), measured[3].lasted);
    assert!(
        waited.abs_diff(truth) * 20 <= truth,
        "two threads on one processor waited {waited} of {truth} ns"
    );
    assert!(weight_of(&report, "off-cpu", "contends") * 20 <= truth, "they were never blocked");
    let complete = report["reports"][0]["complete_percent"].as_f64().expect("it is a number");
    assert!(complete > 95.0, "{complete}% of stacks complete");
    let script = text(&plumb(folder, &["script", "-F", "event,sym", "--event", "off-cpu"]).stdout);
    for (function, reason) in [("sleeps", "nanosleep"), ("takes_lock", "futex"), ("reads_pipe", "pipe_read")]
    {
        // Only a very busy machine can have kept it from being blocked, which has been checked.
        if weight_of(&report, "off-cpu", function) == 0 {
            continue;
        }
        let stack = script.split("\n\n").find(|stack| stack.lines().any(|line| line.trim() == function));
        let leaf = stack.and_then(|stack| stack.lines().nth(1)).unwrap_or_default();
        assert!(leaf.contains(reason), "{function}: {leaf:?}");
    }
}

#[test]
fn times_are_those_that_the_program_measures() {
    let Some(folder) = folder("times") else { return };
    let ways: [&[&str]; 3] = [&["--capture", "perf"], &["--capture", "bpf"], &["--timeline"]];
    for way in ways {
        let Some((measured, said)) = record(&folder, way) else { return };
        assert!(said.contains("off the processor") && said.contains("run-queue wait"), "{said}");
        check(&folder, &measured);
    }
}

/// The wall-clock time of one thread is its time on the CPU, in the run queue and blocked: all three are in one recording, and their sum equals
/// the program's own measurement.
#[test]
fn events_beside_close_the_wall_clock() {
    let Some(folder) = folder("beside") else { return };
    let ways: [&[&str]; 3] = [&["--capture", "perf"], &["--capture", "bpf"], &["--timeline"]];
    for way in ways {
        let options = [&["-e", "cpu-clock,page-faults"], way].concat();
        let Some((measured, said)) = record(&folder, &options) else { return };
        assert!(
            said.contains("of processor time")
                && said.contains("off the processor")
                && said.contains("run-queue wait"),
            "{said}"
        );
        let report = plumb(&folder, &["report", "--json", "--sort", "sym"]).stdout;
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        let events: Vec<&str> = report["reports"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["event"].as_str())
            .collect();
        assert_eq!(events, ["cpu-clock", "page-faults", "off-cpu", "run-queue"]);
        let weight = |event: &str, function: &str| -> u64 {
            let reports = report["reports"].as_array().into_iter().flatten();
            let of_event = reports.filter(|one| one["event"] == event);
            let rows = of_event.filter_map(|one| one["rows"].as_array()).flatten();
            rows.filter(|row| row["sym"] == function).filter_map(|row| row["children_weight"].as_u64()).sum()
        };
        for (function, truth) in ["sleeps", "takes_lock", "reads_pipe"].iter().zip(&measured) {
            let parts = ["cpu-clock", "off-cpu", "run-queue"].map(|event| weight(event, function));
            let (sum, slack) = (parts.iter().sum::<u64>(), truth.lasted / 20 + 5_000_000);
            assert!(sum.abs_diff(truth.lasted) <= slack, "{function}: {parts:?} of {} ns", truth.lasted);
        }
        // Two busy threads on one CPU: one runs while the other waits.
        let [ran, waited] = ["cpu-clock", "run-queue"].map(|event| weight(event, "contends"));
        let (cpu, truth) = (2 * 150_000_000, measured[3].lasted);
        assert!(ran.abs_diff(cpu) * 10 <= cpu, "two threads ran for {ran} of {cpu} ns");
        assert!(waited.abs_diff(truth) * 20 <= truth, "and waited for {waited} of {truth} ns");
    }
}

#[test]
fn short_times_are_left_out_and_told() {
    let Some(folder) = folder("short") else { return };
    // The program sleeps 20 times for 5 ms, and longer elsewhere.
    let Some((measured, said)) = record(&folder, &["--min-block", "100ms"]) else { return };
    assert!(said.contains("below --min-block"), "{said}");
    let report = plumb(&folder, &["report", "--json", "--sort", "sym"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    // A time is recorded as a whole: a sleep of 5 ms followed by a run-queue wait of at least 100 ms is recorded with its 5 ms.
    let (slept, waited) =
        (weight_of(&report, "off-cpu", "sleeps"), weight_of(&report, "run-queue", "sleeps"));
    assert!(slept < 100_000_000 && slept <= waited, "{slept} ns, after which it waited {waited} ns");
    let (blocked, truth) = (weight_of(&report, "off-cpu", "reads_pipe"), &measured[2]);
    let queued = truth.queued.expect("it asks the kernel");
    assert!(
        blocked + queued + 100_000_000 >= truth.lasted,
        "{blocked} of {} ns, {queued} queued",
        truth.lasted
    );
}

/// With fewer stacks than switches the sum is the same.
#[test]
fn what_has_no_stack_is_in_the_sum() {
    let Some(folder) = folder("sum") else { return };
    let Some((measured, _)) = record(&folder, &["-F", "1"]) else { return };
    let report = plumb(&folder, &["report", "--json", "--sort", "comm"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let sum: u64 = report["reports"]
        .as_array()
        .expect("there are reports")
        .iter()
        .filter_map(|r| r["weight"].as_u64())
        .sum();
    let known: u64 = measured.iter().map(|one| one.lasted).sum();
    assert!(sum >= known - known / 10, "{sum} of at least {known} ns");
}

/// Waits and CPU time are the whole of a thread's time, however often it waits: CPU time between its wake-up and the switch
/// to it is not part of the wait.
#[test]
fn many_short_waits_are_what_is_no_processor_time() {
    let folder = spun::folder("off-cpu-many-naps");
    if !spun::compiled(&folder, "tests/programs/many_naps.c", "many_naps") || !needs(Requirement::Bpf) {
        return;
    }
    let output = plumb(&folder, &["record", "--off-cpu", "--", "./many_naps", "10000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let truth: u64 = text(&output.stdout).trim().parse().expect("it says how long it was off");
    let report = plumb(&folder, &["report", "--json", "--sort", "sym"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let off = weight_of(&report, "off-cpu", "naps") + weight_of(&report, "run-queue", "naps");
    assert!(off.abs_diff(truth) * 50 <= truth, "{off} of {truth} ns");
}

/// Starts a program of this directory, and waits until it says that it has started.
fn begun(folder: &Path, name: &str) -> Child {
    let mut child = Command::new(folder.join(name))
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("it is a pipe");
    BufReader::new(out).read_line(&mut line).expect("it says that it has begun");
    child
}

/// Records a started program of this directory for a second. Returns a report by function, and plumb's messages. `None`: not possible
/// here.
fn record_running(folder: &Path, source: &str, name: &str) -> Option<(Value, String)> {
    if !needs(Requirement::Bpf) || !spun::compiled(folder, source, name) {
        return None;
    }
    let mut child = begun(folder, name);
    let pid = child.id().to_string();
    let output = plumb(folder, &["record", "--off-cpu", "--duration", "1", "-p", &pid]);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = plumb(folder, &["report", "--json", "--sort", "sym"]).stdout;
    Some((serde_json::from_slice(&report).expect("it is JSON"), said))
}

/// A wait that started before the recording, and one that is ongoing at its end: no table of the program's code was loaded at the start.
#[test]
fn a_wait_is_in_the_time_in_which_it_was() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let folder = spun::folder("off-cpu-when");
    // Starting the shell may take a while.
    let waits = "sleep 1; sleep 0.3";
    for options in [&[][..], &["--timeline"]] {
        let output =
            plumb(&folder, &[&["record", "--off-cpu"], options, &["--", "sh", "-c", waits]].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("own probes"), "stacks of waits are taken by one: {said}");
        let range = ["fold", "--event", "off-cpu", "--comm", "sleep", "--time", "0.4-0.8"];
        let folded = spun::succeeds(&folder, &range);
        let weights = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let slept = weights.sum::<f64>() / 1e9;
        assert!((0.38..0.42).contains(&slept), "{options:?}: {slept} s of 0.4 s");
    }
}

#[test]
fn each_of_few_long_waits_has_its_stack() {
    let folder = spun::folder("off-cpu-naps");
    let Some((report, _)) = record_running(&folder, "tests/programs/long_naps.c", "long-naps") else {
        return;
    };
    let lasted = report["duration_ns"].as_u64().expect("it says how long it took");
    // On a busy machine it waits for a processor after each nap.
    let [slept, queued] = ["off-cpu", "run-queue"].map(|event| weight_of(&report, event, "naps"));
    assert!(slept + queued + lasted / 50 >= lasted, "{slept} and {queued} of {lasted} ns: {report:#}");
}

#[test]
fn a_wait_from_before_that_ends_late_has_its_own_stack() {
    let folder = spun::folder("off-cpu-late");
    if !spun::compiled(&folder, "tests/programs/two_waits.c", "two_waits") || !needs(Requirement::Bpf) {
        return;
    }
    let mut program = Command::new(folder.join("two_waits"));
    let child = program.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut child = Target(child);
    let pid = child.pid();
    let mut input = child.0.stdin.take().expect("it is piped");
    // The message on the end of the first wait has not been read yet when the recording ends.
    let writer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(2800));
        input.write_all(b"x").expect("it reads");
        input
    });
    let output = plumb(&folder, &["record", "--off-cpu", "--duration", "3", "-p", &pid]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(writer.join().expect("it writes"));
    let report = plumb(&folder, &["report", "--json", "--sort", "sym"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let [first, then] = ["waits_for_input", "sleeps_then"].map(|name| weight_of(&report, "off-cpu", name));
    // The first one starts a moment later.
    assert!((1_500_000_000..2_850_000_000).contains(&first), "{first} {then}");
    assert!((100_000_000..1_500_000_000).contains(&then), "{first} {then}");
    assert!((2_900_000_000..3_100_000_000).contains(&(first + then)), "{first} {then}");
}

/// A wait that had no stack at its start, and is ongoing after the command has ended.
#[test]
fn who_waits_for_longer_than_the_command_runs_has_a_stack() {
    let folder = spun::folder("off-cpu-outlives");
    if !spun::compiled(&folder, "tests/programs/outlives.c", "outlives") || !needs(Requirement::Bpf) {
        return;
    }
    let output = plumb(&folder, &["record", "--off-cpu", "--", "./outlives"]);
    let said = text(&output.stderr);
    assert!(said.contains("100% of stacks complete"), "{said}");
    let report = plumb(&folder, &["report", "--json", "--sort", "sym"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let off = weight_of(&report, "off-cpu", "sleeps_on");
    assert!(off > 650_000_000, "{off} of 700,000,000 ns: {report:#}");
}

/// A thread that waits from before the start until after the end is recorded with the whole time: a deadlock, a hanging read, idle
/// threads of a pool.
#[test]
fn who_waits_all_the_time_is_there() {
    let folder = spun::folder("off-cpu-hangs");
    let Some((report, said)) = record_running(&folder, "tests/programs/hangs.c", "hangs") else { return };
    assert!(!said.contains("walked in the kernel"), "nothing ran that could have been: {said}");
    let duration = report["duration_ns"].as_u64();
    let lasted = duration.unwrap_or_else(|| panic!("it says how long it took: {report:#}"));
    for (function, threads) in [("takes_lock", 2), ("hangs_in_read", 1), ("waits_for_work", 200)] {
        let off = weight_of(&report, "off-cpu", function);
        let whole = threads * lasted;
        assert!(off <= whole && off + whole / 50 >= whole, "{function}: {off} of {whole} ns: {said}");
    }
    let complete = report["reports"][0]["complete_percent"].as_f64().expect("it is a number");
    assert!(complete > 99.0, "{complete}% of stacks complete");
    // Threads that wait for work are idle; two that hold each other's lock are not, nor is a read that hangs.
    let kinds = report["reports"][0]["waits"].as_array().expect("there are kinds");
    let of = |kind: &str| {
        let mut kinds = kinds.iter().filter(|one| one["kind"] == kind);
        kinds
            .next()
            .map_or((0.0, None), |one| (one["weight"].as_f64().unwrap_or(0.0), one["percent"].as_f64()))
    };
    let lasted = lasted as f64;
    assert!((of("idle").0 / lasted - 200.0).abs() < 4.0 && of("idle").1.is_none(), "{kinds:?}");
    assert!((of("lock").0 / lasted - 2.0).abs() < 0.04, "{kinds:?}");
}
