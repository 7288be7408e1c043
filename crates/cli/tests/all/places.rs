//! `plumb record -e` of tracepoints and functions with `--capture bpf`: every hit is counted, however it occurs, compared with the
//! program's own count.
//!
//! Needs BPF, root and a C compiler; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plumb_fixtures::{Requirement, compiles, needs, probe::kernel, skip};
use serde_json::Value;

const TRACEPOINT: &str = "syscalls:sys_enter_brk";
const FUNCTION: &str = "uprobe:./places:probed";
/// Calls of `probed` in each pass.
const PROBED: u64 = 100;
/// Number of passes: by the program, its child, the program that this execs, a thread.
const PASSES: u64 = 4;

/// The first Linux with cookies for programs at tracepoints.
const COOKIES: (u32, u32) = (6, 10);

/// Directory of a test, with its program.
struct Folder(PathBuf);

impl Folder {
    /// `None`, after saying why, if recording is not possible.
    fn new(name: &str) -> Option<Self> {
        if !needs(Requirement::Bpf) {
            return None;
        }
        if kernel() < COOKIES {
            skip(Requirement::Kernel, "programs at tracepoints are not told which one before Linux 6.10");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("places-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/places.c");
        // A build ID that no cache knows.
        let id = format!("-Wl,--build-id=0x{:016x}{:08x}", nanoseconds(), std::process::id());
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-fomit-frame-pointer", "-pthread", &id, "-o"])
            .arg(folder.join("places"))
            .arg(source);
        if !compiles(&mut compiler) {
            return None;
        }
        let folder = Self(folder);
        let tried = folder.plumb(&["record", "-e", TRACEPOINT, "--capture", "bpf", "--", "true"]);
        let said = text(&tried.stderr);
        assert!(tried.status.success() && !said.contains("not walked in the kernel"), "{said}");
        Some(folder)
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let command = command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("plumb runs")
    }

    fn plumb(&self, arguments: &[&str]) -> Output {
        self.start(arguments).wait_with_output().expect("plumb ends")
    }

    /// Records the program, and returns plumb's messages. `options` precede the command, `counts` are its arguments.
    fn record(&self, options: &[&str], counts: &[&str]) -> String {
        let before = ["record", "--capture", "bpf"];
        let output = self.plumb(&[&before, options, &["--", "./places"], counts].concat());
        let said = text(&output.stderr);
        assert!(output.status.success() && said.contains("walked in the kernel"), "{said}");
        assert!(!said.contains("copied, not walked"), "{said}");
        said
    }

    /// As [`record`](Self::record), repeated until nothing was lost and `percent` of the stacks were unwound in the kernel: tables may be
    /// late on a busy machine, and until then space for copies is limited.
    fn record_all(&self, options: &[&str], counts: &[&str], percent: f64) -> String {
        for _ in 0..5 {
            let said = self.record(options, counts);
            let walked = said.lines().find_map(|line| {
                line.split_once("% of samples walked")?.0.rsplit(' ').next()?.parse::<f64>().ok()
            });
            if self.report("profile.plumb")["lost_samples"] == 0 && walked.expect("it is said") >= percent {
                return said;
            }
        }
        panic!("none of five recordings was whole, with {percent}% walked");
    }

    fn report(&self, file: &str) -> Value {
        let report = self.plumb(&["report", "--json", file]);
        serde_json::from_slice(&report.stdout).expect("it is JSON")
    }

    /// The stacks of an event with their weights, outermost frame first.
    fn stacks(&self, file: &str, event: &str) -> Vec<(String, u64)> {
        let folded = text(&self.plumb(&["fold", file, "--event", event]).stdout);
        let line = |line: &str| {
            let (stack, weight) = line.rsplit_once(' ').expect("a stack and its weight");
            (format!("{stack};"), weight.parse().expect("a number"))
        };
        folded.lines().map(line).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn nanoseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Weight of the stacks with this function.
fn weight_of(stacks: &[(String, u64)], function: &str) -> u64 {
    let has = |stack: &str| stack.contains(&format!(";{function};"));
    stacks.iter().filter(|(stack, _)| has(stack)).map(|(_, weight)| weight).sum()
}

fn number(report: &Value, event: &str, key: &str) -> u64 {
    let reports = report["reports"].as_array().expect("there are reports");
    let one = reports.iter().find(|report| report["event"] == event).expect("each event has one");
    one[key].as_u64().unwrap_or_else(|| panic!("{key}: {one}"))
}

fn is_rooted(stacks: &[(String, u64)]) -> bool {
    stacks.iter().all(|(stack, _)| {
        let root = ["_start", "__clone", "_dl_start_user", "clone3"];
        root.iter().any(|root| stack.contains(&format!(";{root}"))) && !stack.contains(";[")
    })
}

/// Counts for a new file, when most samples are copied, and after a wait, when most are unwound in the kernel.
#[test]
fn each_passing_is_a_sample_of_the_function_that_it_is_in() {
    let Some(folder) = Folder::new("each") else { return };
    for (counts, waited, percent) in
        [(["30", "20", "10", "0"], 0, 0.0), (["3000", "2000", "1000", "200"], 2, 90.0)]
    {
        let times = |index: usize| counts[index].parse::<u64>().expect("a number");
        for more in [&[][..], &["--timeline"]] {
            let options = [&["-e", TRACEPOINT, "-e", FUNCTION, "-c", "1"], more].concat();
            let said = folder.record_all(&options, &counts, percent);
            let report = folder.report("profile.plumb");
            let stacks = folder.stacks("profile.plumb", TRACEPOINT);
            for (index, (function, more)) in
                [("first", waited), ("second", 0), ("third", 0)].into_iter().enumerate()
            {
                let truth = times(index) * PASSES + more;
                assert_eq!(weight_of(&stacks, function), truth, "{function}: {stacks:?} {said}");
            }
            for within in ["in_child", "in_thread"] {
                assert_eq!(
                    weight_of(&stacks, within),
                    times(0) + times(1) + times(2),
                    "{within}: {stacks:?}"
                );
            }
            assert!(is_rooted(&stacks), "{stacks:?}");
            let (samples, happened) =
                (number(&report, TRACEPOINT, "samples"), number(&report, TRACEPOINT, "occurrences"));
            assert_eq!(samples, happened, "the loader's and malloc's too");
            let stacks = folder.stacks("profile.plumb", FUNCTION);
            assert_eq!(weight_of(&stacks, "probed"), PROBED * (PASSES + waited));
            assert_eq!(number(&report, FUNCTION, "occurrences"), PROBED * (PASSES + waited));
            assert!(is_rooted(&stacks), "{stacks:?}");
            assert!(
                stacks.iter().all(|(stack, _)| stack.ends_with(";pass;probed;")),
                "it is the leaf: {stacks:?}"
            );
        }
    }
}

/// Sampled by count, and by time: sums stay the same, and shares nearly.
#[test]
fn samples_stand_for_all_passings() {
    let Some(folder) = Folder::new("stand") else { return };
    let counts = ["300000", "200000", "100000", "400"];
    let all = 600_000 * PASSES;
    for (options, percent) in [(&["-c", "1000"][..], 1), (&["-F", "999"], 10), (&[], 10)] {
        let said = folder.record(&[&["-e", TRACEPOINT], options].concat(), &counts);
        let report = folder.report("profile.plumb");
        let happened = number(&report, TRACEPOINT, "occurrences");
        assert!(happened > all && happened < all + 100, "{happened} of {all}: {said}");
        let weight = number(&report, TRACEPOINT, "weight");
        // Hits since each CPU's last sample are in no sample.
        let rest = if options.first() == Some(&"-c") { 1000 * 64 } else { 0 };
        assert!(weight <= happened && weight + rest >= happened, "{weight} of {happened}");
        let samples = number(&report, TRACEPOINT, "samples");
        assert!(samples <= 20_000, "{samples} are too many: {said}");
        let stacks = folder.stacks("profile.plumb", TRACEPOINT);
        for (function, share) in [("first", 3), ("second", 2), ("third", 1)] {
            let (weight, truth) = (weight_of(&stacks, function), all * share / 6);
            assert!(
                weight.abs_diff(truth) * 100 <= truth * percent,
                "{function}: {weight} of {truth}: {said}"
            );
        }
    }
}

/// Entry and exit, also of calls whose tracepoints have another name.
#[test]
fn system_calls_are_the_ones_that_were_asked_for() {
    let Some(folder) = Folder::new("calls") else { return };
    for (index, call) in
        ["newstat", "newfstat", "newlstat", "newuname", "sendfile64", "umount"].iter().enumerate()
    {
        for side in ["enter", "exit"] {
            let event = format!("syscalls:sys_{side}_{call}");
            folder.record(&["-e", &event], &["calls"]);
            let stacks = folder.stacks("profile.plumb", &event);
            assert_eq!(weight_of(&stacks, "main"), index as u64 + 1, "{event}: {stacks:?}");
        }
    }
}

#[test]
fn two_recordings_at_once_are_both_whole() {
    let Some(folder) = Folder::new("two") else { return };
    let files = ["one.plumb", "two.plumb"];
    let recordings: Vec<Child> = files
        .iter()
        .map(|file| {
            let options =
                ["record", "--capture", "bpf", "-e", TRACEPOINT, "-e", FUNCTION, "-c", "1", "-o", file];
            folder.start(&[&options[..], &["--", "./places", "60", "40", "20", "500"]].concat())
        })
        .collect();
    let ended = recordings.into_iter().map(|recording| recording.wait_with_output().expect("it ends"));
    let said: Vec<String> = ended.map(|output| text(&output.stderr)).collect();
    for (file, said) in files.into_iter().zip(said) {
        let stacks = folder.stacks(file, TRACEPOINT);
        assert_eq!(weight_of(&stacks, "first"), 60 * PASSES + 2, "{said} {stacks:?}");
        assert_eq!(number(&folder.report(file), FUNCTION, "occurrences"), PROBED * (PASSES + 2));
    }
}

/// Other users of the same tracepoint see all hits, whoever is sampled.
#[test]
fn others_at_the_same_tracepoint_are_not_disturbed() {
    let Some(folder) = Folder::new("others") else { return };
    let count = || {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", TRACEPOINT, "--", "./places", "3000", "2000", "1000", "300"]);
        let output = command.current_dir(&folder.0).output().ok().filter(|output| output.status.success())?;
        text(&output.stderr).split(',').next()?.trim().parse::<u64>().ok()
    };
    let Some(alone) = count() else {
        skip(Requirement::PerfCommand, "no perf");
        return;
    };
    assert!(alone > 6000 * PASSES, "{alone}");
    for whom in [&["-a", "--duration", "3"][..], &["--", "./places", "300000", "0", "0", "300"]] {
        let options = ["record", "--capture", "bpf", "-e", TRACEPOINT];
        let mut recording = folder.start(&[&options[..], whom].concat());
        std::thread::sleep(std::time::Duration::from_millis(800));
        let beside = count();
        assert!(recording.wait().is_ok_and(|status| status.success()));
        assert_eq!(beside, Some(alone), "{whom:?}");
    }
}

/// A timer interrupts the handling of a probe hit, and its samples are taken even so.
#[test]
fn a_clock_beside_a_place_that_is_passed_all_the_time_loses_nothing() {
    let Some(folder) = Folder::new("clock") else { return };
    let options = ["-e", TRACEPOINT, "-e", "cpu-clock", "-F", "1999"];
    let said = folder.record(&options, &["900000", "0", "0", "300"]);
    let report = folder.report("profile.plumb");
    let reports = report["reports"].as_array().expect("there are reports");
    let clock = reports.iter().find(|report| report["event"] == "cpu-clock").expect("it has a report");
    let coverage = clock["coverage_percent"].as_f64().expect("it is a clock");
    assert!((85.0..115.0).contains(&coverage), "{coverage}% of its processor time: {said}");
    let happened = number(&report, TRACEPOINT, "occurrences");
    assert!(happened > 900_000 * PASSES && happened < 900_000 * PASSES + 100, "{happened}");
    assert!(is_rooted(&folder.stacks("profile.plumb", TRACEPOINT)));
}

/// If the target outlives the recording, only the recorded part is counted.
#[test]
fn a_recording_that_ends_before_its_target_counts_what_it_saw() {
    let Some(folder) = Folder::new("ends") else { return };
    for whom in [&["-a"][..], &[]] {
        let options = ["record", "--capture", "bpf", "-e", TRACEPOINT, "-c", "1000", "--duration", "1"];
        let mut running = Command::new(folder.0.join("places"));
        let mut running = running.args(["20000000", "0", "0", "1"]).spawn().expect("it was compiled");
        let pid = running.id().to_string();
        let whom = if whom.is_empty() { vec!["-p", &pid] } else { whom.to_vec() };
        let output = folder.plumb(&[&options[..], &whom].concat());
        running.kill().and_then(|()| running.wait()).expect("it ends");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = folder.report("profile.plumb");
        let (weight, happened) =
            (number(&report, TRACEPOINT, "weight"), number(&report, TRACEPOINT, "occurrences"));
        let rest = 1000 * 64;
        assert!(weight > 10_000 && weight <= happened && weight + rest >= happened, "{weight} of {happened}");
        if whom[0] == "-p" {
            let stacks = folder.stacks("profile.plumb", TRACEPOINT);
            assert_eq!(weight_of(&stacks, "first"), weight, "it does nothing else: {stacks:?}");
        }
    }
}

/// The kernel does not call a program within itself: hits skipped for that reason are reported.
#[test]
fn what_is_passed_within_an_interrupt_is_counted() {
    let Some(folder) = Folder::new("within") else { return };
    let options = ["-e", "irq_vectors:local_timer_entry", "-e", TRACEPOINT, "-c", "1"];
    let said = folder.record(&options, &["200000", "0", "0", "300"]);
    let unseen = said
        .split_once("not seen: at most ")
        .and_then(|(_, rest)| rest.split(';').next()?.parse::<u64>().ok());
    assert!(unseen.is_some_and(|unseen| unseen > 0), "a timer comes hundreds of times a second: {said}");
    let stacks = folder.stacks("profile.plumb", TRACEPOINT);
    let lost = folder.report("profile.plumb")["lost_samples"].as_u64().expect("a number");
    let seen = weight_of(&stacks, "first") + lost;
    assert!(seen >= 200_000 * PASSES, "calls are made in no interrupt: {seen}");
}
