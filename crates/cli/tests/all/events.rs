//! `plumb record -e`: samples match the events, by the program's own count and the kernel's.
//!
//! Needs perf_event_open and a C compiler, tracepoints and uprobes root; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// Tests run in parallel, except those that must not lose samples: events share rings, and if others keep the recorder from the CPUs,
/// a flood of one event leaves no space for the rest.
static TURNS: RwLock<()> = RwLock::new(());

#[expect(dead_code, reason = "held until the test has ended")]
enum Turn {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Directory of a test, with its program.
struct Place {
    folder: PathBuf,
    _turn: Turn,
}

impl Place {
    /// `None`, after saying why, if recording is not possible.
    fn new(name: &str) -> Option<Self> {
        let turn = TURNS.read().unwrap_or_else(PoisonError::into_inner);
        Self::with(name, Turn::Beside(turn))
    }

    /// As [`new`](Self::new), while no other test runs.
    fn alone(name: &str) -> Option<Self> {
        let turn = TURNS.write().unwrap_or_else(PoisonError::into_inner);
        Self::with(name, Turn::Alone(turn))
    }

    fn with(name: &str, turn: Turn) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("events-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/events.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-o"]).arg(folder.join("events")).arg(source);
        if !compiles(&mut compiler) {
            return None;
        }
        let place = Self { folder, _turn: turn };
        needs(Requirement::Perf).then_some(place)
    }

    fn plumb(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).output().expect("plumb runs")
    }

    /// The truncated stacks of the recording, except the loader's with no memory at all. Before a program's own code runs, the page at
    /// its stack pointer may never have been touched, and that is where the kernel begins to copy: nothing can be
    /// unwound, even if pages further up have the callers.
    fn cut(&self) -> Vec<String> {
        let script = text(&self.plumb(&["script", "-F", "ip,sym,dso"]).stdout);
        let is_marker =
            |frame: &str| frame.split_whitespace().nth(1).is_some_and(|name| name.starts_with('['));
        let is_cut = |stack: &&str| stack.lines().any(is_marker);
        let is_bare = |stack: &&str| match stack
            .trim()
            .lines()
            .filter(|line| !line.contains("(inlined)"))
            .collect::<Vec<_>>()[..]
        {
            [leaf, marker] => leaf.contains("/ld-linux") && marker.contains("[stack memory not readable]"),
            _ => false,
        };
        script.split("\n\n").filter(is_cut).filter(|stack| !is_bare(stack)).map(str::to_owned).collect()
    }

    /// Records the program with an event. Returns the numbers that it printed and the report. `None`: not permitted.
    fn record(&self, event: &[&str], counts: [&str; 4]) -> Option<(Vec<u64>, Value)> {
        if !needs(requirement_of(event)) {
            return None;
        }
        let arguments = [&["record", "-e"], event, &["--", "./events"], &counts].concat();
        let output = self.plumb(&arguments);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let numbers = text(&output.stdout).lines().map(|line| line.parse().expect("a number")).collect();
        let report = self.plumb(&["report", "--json", "--no-children", "--sort", "sym"]);
        Some((numbers, serde_json::from_slice(&report.stdout).expect("it is JSON")))
    }

    /// As [`record`](Self::record), for a recording without losses.
    fn record_all(&self, event: &[&str], counts: [&str; 4]) -> Option<(Vec<u64>, Value)> {
        for _ in 0..5 {
            let recorded = self.record(event, counts)?;
            if recorded.1["lost_samples"] == 0 {
                return Some(recorded);
            }
        }
        panic!("each of five recordings lost samples");
    }
}

/// The requirement for these options of `record -e`.
fn requirement_of(options: &[&str]) -> Requirement {
    let any = |wanted: &dyn Fn(&str) -> bool| options.iter().any(|option| wanted(option));
    if any(&|option| option == "bpf") {
        Requirement::Bpf
    } else if any(&|option| option.contains(':')) {
        Requirement::Root
    } else if any(&|option| option.split(',').any(|event| event == "cs" || event == "context-switches")) {
        Requirement::KernelSamples
    } else {
        Requirement::Perf
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Weight of this function's rows.
fn weight_of(report: &Value, function: &str) -> u64 {
    let rows = report["reports"][0]["rows"].as_array().expect("there are rows");
    let own = rows.iter().filter(|row| row["sym"] == function).map(|row| row["self_weight"].as_u64());
    own.map(|weight| weight.expect("it is a number")).sum()
}

fn is_about(value: u64, truth: u64, percent: u64) -> bool {
    value.abs_diff(truth) * 100 <= truth * percent
}

#[test]
fn page_faults_are_faults_however_many_are_sampled() {
    let Some(place) = Place::new("faults") else { return };
    // Few: each; many: by frequency, where the sum is the kernel's count, and the shares are an
    // estimate; and each hundredth. The last number: missing faults per lost sample, as an unprivileged user has small
    // rings, and a recorder may be kept from them.
    let cases: [(&[&str], &str, u64, u64); 4] = [
        (&["page-faults"], "400", 0, 1),
        (&["minor-faults"], "600000", 10, 0),
        (&["page-faults", "-F", "500"], "600000", 10, 0),
        (&["page-faults", "-c", "100"], "60000", 1, 100),
    ];
    for (event, pages, percent, each) in cases {
        let Some((numbers, report)) = place.record(event, [pages, "0", "0", "0"]) else { return };
        let lost = report["lost_samples"].as_u64().expect("it is a number") * each;
        // Lost samples may belong to any function.
        let is_about = |value: u64, truth: u64, percent: u64| {
            value * 100 <= truth * (100 + percent) && (value + lost) * 100 >= truth * (100 - percent)
        };
        let touched = weight_of(&report, "touch");
        assert!(
            is_about(touched, numbers[0], percent),
            "{event:?}: {touched} of {} faults, {lost} lost",
            numbers[0]
        );
        let shown = &report["reports"][0];
        assert_eq!((&shown["event"], &shown["unit"]), (&event[0].into(), &event[0].into()));
        assert!(shown["coverage_percent"].is_null(), "faults don't cover processor time");
        let happened = report["occurrences"].as_u64().expect("the kernel counts them");
        let weight = shown["weight"].as_u64().expect("it is a number");
        assert!(
            happened >= numbers[0] && is_about(weight, happened, 5),
            "{weight} of {happened}, {lost} lost"
        );
        assert!(
            percent != 10 || weight == happened,
            "by frequency the sum is what was counted: {weight} of {happened}"
        );
        let samples = shown["samples"].as_u64().expect("it is a number");
        // Rings hold a burst until the recorder looks and limits it, which may take a tenth of a second or more.
        assert!(percent == 0 || samples * 2 < happened, "{samples} of {happened} are no limit");
        assert_eq!(place.cut(), [""; 0], "{event:?}");
    }
}

/// A function that is the first to use a page of the stack has callers, too.
#[test]
fn faults_of_a_growing_stack_have_their_callers() {
    let Some(place) = Place::new("growing") else { return };
    let output = place.plumb(&["record", "-e", "page-faults", "--", "./events", "1", "0", "0", "0", "13"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let script = text(&place.plumb(&["script", "-F", "sym"]).stdout);
    let of = |stack: &&str| stack.trim_start().starts_with("grow");
    let stacks: Vec<&str> = script.split("\n\n").filter(of).collect();
    // Three pages, the first of which may exist already.
    assert!(stacks.len() >= 2, "{} faults: {script}", stacks.len());
    for stack in stacks {
        assert!(stack.contains("main") && !stack.contains('['), "{stack}");
    }
}

/// Deeper than any copy reaches: in the kernel a stack is unwound in place.
#[test]
fn faults_deep_in_a_stack_are_walked_in_the_kernel() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let Some(place) = Place::new("deep") else { return };
    // The first part makes the recorder load tables, which arrive while the program sleeps.
    let command = ["--", "./events", "2000", "0", "0", "300", "400"];
    let how = ["record", "-e", "page-faults", "-c", "1", "--capture", "bpf"];
    let output = place.plumb(&[&how[..], &command].concat());
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("copied, not walked in the kernel"), "{said}");
    let script = text(&place.plumb(&["script", "-F", "sym"]).stdout);
    let stacks = script.split("\n\n").filter(|stack| stack.trim_start().starts_with("grow"));
    let depths: Vec<usize> = stacks
        .map(|stack| {
            assert!(stack.contains("main") && !stack.contains('['), "{stack}");
            stack.lines().filter(|line| line.trim() == "grow").count()
        })
        .collect();
    // 400 calls of slightly more than 1 KiB each, on pages of 4 KiB.
    assert!((95..=110).contains(&depths.len()), "{} faults: {said}", depths.len());
    assert!(depths.iter().max().is_some_and(|&deepest| deepest > 390), "{depths:?}");
}

/// The kernel counts each one, and samples lost while tables are made are included in the sum.
#[test]
fn faults_walked_in_the_kernel_are_as_many_as_happened() {
    let Some(place) = Place::new("walked") else { return };
    let Some((numbers, report)) =
        place.record(&["page-faults", "--capture", "bpf"], ["60000", "0", "0", "0"])
    else {
        return;
    };
    let shown = report_of(&report, "page-faults");
    assert_eq!(shown["weight"], shown["occurrences"]);
    let touched = weight_of(&report, "touch");
    assert!(is_about(touched, numbers[0], 10), "{touched} of {} faults", numbers[0]);
    assert_eq!(place.cut(), [""; 0]);
}

#[test]
fn context_switches_are_those_of_the_kernels_account() {
    let Some(place) = Place::new("switches") else { return };
    let Some((numbers, report)) = place.record(&["cs"], ["1", "0", "0", "300"]) else { return };
    let switches = report["reports"][0]["weight"].as_u64().expect("it is a number");
    // The program's own figure excludes switches at its start, and involuntary ones.
    assert!(numbers[1] >= 300 && switches >= numbers[1], "{switches} of {numbers:?}");
    let script = text(&place.plumb(&["script"]).stdout);
    assert!(script.contains("context-switches:"), "{script}");
    assert!(script.contains("do_nanosleep"), "the reason is in the stack");
}

#[test]
fn tracepoints_and_functions_are_sampled_each_single_time() {
    let Some(place) = Place::new("places") else { return };
    // The second is in a library that is mapped separately.
    for (event, function) in [
        ("syscalls:sys_enter_getppid", "getppid"),
        ("uprobe:libc.so.6:getppid", "getppid"),
        ("uprobe:events:probed", "probed"),
        ("uprobe:./events:probed", "probed"),
    ] {
        let Some((_, report)) = place.record(&[event], ["1", "321", "321", "0"]) else { return };
        let shown = &report["reports"][0];
        assert_eq!(shown["event"], event);
        assert_eq!((&shown["samples"], &shown["weight"]), (&321.into(), &321.into()), "{event}");
        assert_eq!(report["occurrences"], 321);
        assert_eq!(shown["complete_percent"], 100.0);
        let script = text(&place.plumb(&["script", "-F", "sym"]).stdout);
        let stacks: Vec<&str> = script.split("\n\n").filter(|stack| !stack.trim().is_empty()).collect();
        assert_eq!(stacks.len(), 321);
        for stack in stacks {
            assert!(stack.contains(function) && stack.contains("main"), "{event}: {stack}");
        }
    }
}

/// The report of an event, among those of the recording.
fn report_of<'a>(report: &'a Value, event: &str) -> &'a Value {
    let reports = report["reports"].as_array().expect("there are reports");
    reports.iter().find(|report| report["event"] == event).expect("each event has one")
}

/// Each event is counted as if it had been recorded alone, at its own rate.
#[test]
fn several_events_are_recorded_at_once() {
    let Some(place) = Place::alone("several") else { return };
    let events = "page-faults,uprobe:events:probed";
    // No more faults than a debug build of plumb can unwind in real time: initially each one is a sample.
    let counts = ["500", "0", "321", "300"];
    let Some((numbers, report)) =
        place.record_all(&[events, "-e", "cpu-clock", "-e", "context-switches"], counts)
    else {
        return;
    };
    let weight = |event: &str| report_of(&report, event)["weight"].as_u64().expect("it is a number");
    let faults = weight("page-faults");
    // Starting it takes some dozens more.
    assert!((numbers[0]..numbers[0] + 200).contains(&faults), "{faults} of {} faults", numbers[0]);
    assert_eq!(weight("uprobe:events:probed"), 321);
    assert_eq!(
        report_of(&report, "uprobe:events:probed")["samples"],
        321,
        "the other one's pace is not its own"
    );
    for event in ["page-faults", "uprobe:events:probed"] {
        assert_eq!(report_of(&report, event)["occurrences"], weight(event), "{event}");
    }
    let switches = weight("context-switches");
    assert!(switches >= numbers[1] && numbers[1] >= 300, "{switches} of {} switches", numbers[1]);
    let clock = report_of(&report, "cpu-clock");
    let coverage = clock["coverage_percent"].as_f64().expect("it is a clock");
    // From a few dozen samples.
    assert!(coverage > 50.0, "{coverage}% of its processor time");
    assert!(report_of(&report, "page-faults")["coverage_percent"].is_null());
    // Each sample belongs to its own event.
    for (event, function) in [("uprobe:events:probed", "probed"), ("context-switches", "do_nanosleep")] {
        let script = text(&place.plumb(&["script", "-F", "event,sym", "--event", event]).stdout);
        let stacks: Vec<&str> = script.split("\n\n").filter(|stack| !stack.trim().is_empty()).collect();
        let with = stacks.iter().filter(|stack| stack.contains(function)).count();
        // A thread is also switched out involuntarily.
        assert!(with >= 300 && (with == stacks.len() || event != "uprobe:events:probed"), "{event}: {with}");
    }
}

/// The kernel unwinder knows the event of each sample, counted or not.
#[test]
fn stacks_of_several_events_are_walked_in_the_kernel() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let Some(place) = Place::new("walked") else { return };
    let options = ["page-faults", "-e", "context-switches", "--capture", "bpf"];
    for more in [&[][..], &["--timeline"]] {
        let said =
            place.plumb(&[&["record", "-q", "-e"], &options[..], more, &["--", "true"]].concat()).stderr;
        assert!(!text(&said).contains("not walked in the kernel"), "{}", text(&said));
        let counts = ["60000", "0", "0", "300"];
        let Some((numbers, report)) = place.record(&[&options[..], more].concat(), counts) else {
            return;
        };
        let weight = |event: &str| report_of(&report, event)["weight"].as_u64().expect("it is a number");
        let faults = weight("page-faults");
        assert!(faults >= numbers[0] && is_about(faults, numbers[0], 2), "{faults} of {} faults", numbers[0]);
        let switches = weight("context-switches");
        assert!(switches >= numbers[1] && numbers[1] >= 300, "{switches} of {} switches", numbers[1]);
        let folded = text(&place.plumb(&["fold", "--event", "context-switches"]).stdout);
        let sleeping: u64 = folded
            .lines()
            .filter(|line| line.contains("do_nanosleep"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        // Samples lost while tables are made are in the weight of others: more where other programs run.
        assert!(sleeping >= 225 && sleeping <= switches, "{sleeping} of {switches}: {folded}");
        let folded = text(&place.plumb(&["fold", "--event", "page-faults"]).stdout);
        assert!(!folded.contains("do_nanosleep"), "nothing faults there: {folded}");
    }
    let said = place.plumb(&["record", "-e", "cs,cpu-clock", "--capture", "bpf", "--", "true"]).stderr;
    assert!(text(&said).contains("context-switches are copied, not walked"), "{}", text(&said));
}

/// With -c each event is sampled at that count, whatever its kind.
#[test]
fn several_events_are_sampled_each_so_many_times() {
    let Some(place) = Place::new("counted") else { return };
    let events = "page-faults,syscalls:sys_enter_getppid";
    let Some((numbers, report)) = place.record(&[events, "-c", "10"], ["6000", "3000", "0", "0"]) else {
        return;
    };
    let faults = report_of(&report, "page-faults");
    let weight = faults["weight"].as_u64().expect("it is a number");
    assert!(is_about(weight, numbers[0], 5), "{weight} of {} faults", numbers[0]);
    assert_eq!(faults["samples"].as_u64().map(|samples| samples * 10), Some(weight));
    let calls = report_of(&report, "syscalls:sys_enter_getppid")["weight"].as_u64().expect("it is a number");
    let cpus = plumb_fixtures::host::cpus() as u64;
    assert!(calls <= 3000 && calls + 10 * cpus >= 3000, "{calls} of 3000 calls");
    assert_eq!(report_of(&report, "syscalls:sys_enter_getppid")["occurrences"], 3000);
}

#[test]
fn every_tenth_call_counts_ten() {
    let Some(place) = Place::new("tenth") else { return };
    let Some((_, report)) = place.record(&["uprobe:events:probed", "-c", "10"], ["1", "0", "5000", "0"])
    else {
        return;
    };
    let shown = &report["reports"][0];
    let (samples, weight) = (shown["samples"].as_u64(), shown["weight"].as_u64().expect("it is a number"));
    // Each CPU counts to ten separately.
    let cpus = plumb_fixtures::host::cpus() as u64;
    assert!(weight <= 5000 && weight + 10 * cpus >= 5000, "{weight}");
    assert_eq!(samples, Some(weight / 10));
    let folded = text(&place.plumb(&["fold"]).stdout);
    let sum: u64 = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(sum, weight, "folded stacks count calls, not samples: {folded}");
}

#[test]
fn what_cannot_be_sampled_is_explained() {
    let Some(place) = Place::new("refused") else { return };
    let refused = |arguments: &[&str], word: &str| {
        let output = place.plumb(&[arguments, &["--", "touch", "ran"]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(word), "no {word:?} in: {said}");
        assert!(!place.folder.join("ran").exists(), "the command has not run");
    };
    refused(&["record", "-e", "page-fault"], "page-faults");
    refused(&["record", "-e", "cs,page-faults", "-e", "faults"], "given twice");
    refused(&["record", "-e", "uprobe:./events:prob"], "similar names:\n  probed");
    refused(&["record", "-e", "uprobe:nowhere.so:f"], "give its path");
    refused(&["record", "-e", "cs", "--user-only"], "happens in the kernel only");
    refused(&["record", "-e", "uprobe:libc.so.6:memcpy"], "IFUNC");
    let counters = place.plumb(&["record", "-e", "instructions", "--", "true"]);
    if !counters.status.success() {
        assert!(text(&counters.stderr).contains("no performance counter"), "{}", text(&counters.stderr));
    }
}

/// As root, tracepoints are found even if their file system is not mounted, and it stays unmounted.
#[test]
fn a_tracepoint_needs_no_mount() {
    if !needs(Requirement::Root) {
        return;
    }
    let Some(place) = Place::new("mount") else { return };
    let mounts = || std::fs::read_to_string("/proc/self/mounts").expect("the kernel has it");
    let before = mounts();
    let output = place.plumb(&["record", "-e", "sched:sched_process_exi", "--", "true"]);
    let said = text(&output.stderr);
    assert!(said.contains("similar names:") && said.contains("sched:sched_process_exit"), "{said}");
    assert_eq!(mounts(), before);
}

/// Each sample has its own time, and samples are in order.
#[test]
fn a_timeline_has_the_time_of_each_sample() {
    let Some(place) = Place::new("timeline") else { return };
    for capture in ["perf", "bpf"] {
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let output = place.plumb(&["record", "--timeline", "--capture", capture, "--", "sh", "-c", burn]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let script = text(&place.plumb(&["script", "-F", "tid,time"]).stdout);
        let times: Vec<&str> = script.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert!(times.len() > 20, "{script}");
        let mut distinct = times.clone();
        distinct.sort_unstable();
        assert_eq!(distinct, times, "in order");
        distinct.dedup();
        // Two CPUs may take samples in the same microsecond, which is the printed resolution.
        assert!(
            distinct.len() * 100 >= times.len() * 95,
            "{} times of {} samples",
            distinct.len(),
            times.len()
        );
    }
}
