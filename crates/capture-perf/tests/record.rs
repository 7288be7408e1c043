//! Records real programs and compares the results with the kernel's accounting.
//!
//! Needs perf_event_open and a C compiler; without them, a test prints so and is skipped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plumb_capture_perf::{Code, Counter, Error, Recorded, Recorder, SamplingOptions, TakenProfile};
use plumb_fixtures::{Requirement, compiles, needs, skip};
use plumb_profile::{Past, Process, Scope};
use plumb_target::{End, Launch, Target};

use plumb_fixtures::host::stolen;

/// A compiled program of `programs/`; `None` without a compiler.
fn compile(name: &str, optimised: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    compiles(Command::new("cc").args([optimised, "-o"]).arg(&program).arg(source)).then_some(program)
}

/// The test program, unless this machine can't run these tests.
fn burn() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    if !needs(Requirement::Perf) || !needs(Requirement::Cc) {
        return None;
    }
    PROGRAM.get_or_init(|| compile("burn", "-O2")).as_deref()
}

fn command(program: impl Into<OsString>, arguments: &[&str]) -> Target {
    let arguments = arguments.iter().map(Into::into).collect();
    Target::Command(Launch { program: program.into(), arguments, environment: Vec::new() })
}

/// One recording at a time: memory for rings is limited per user.
static ALONE: Mutex<()> = Mutex::new(());

fn record(target: &Target) -> (End, Recorded) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut recorder = Recorder::start(target, &SamplingOptions::default()).expect("it can be recorded");
    let end = loop {
        if let Some(end) = recorder.step(Duration::from_millis(100)).expect("recording goes on") {
            break end;
        }
    };
    (end, recorder.finish())
}

/// Samples as a share of those expected from the target's CPU time.
fn coverage(recorded: &Recorded) -> f64 {
    let time = recorded.target_cpu.expect("the kernel accounts it");
    let time = if recorded.setup.events[0].code == Code::User { time.user } else { time.total() };
    recorded.statistics.samples as f64 / time.as_secs_f64() / f64::from(recorded.setup.frequency_hz)
}

#[test]
fn samples_account_for_the_processor_time() {
    let Some(burn) = burn() else { return };
    let before = stolen();
    let (end, recorded) = record(&command(burn, &["600"]));
    assert!(matches!(end, End::Exited(status) if status.code() == Some(7)), "{end:?}");
    let coverage = coverage(&recorded);
    let most = 1.05 + (stolen() - before) / 0.6;
    assert!((0.95..=most).contains(&coverage), "coverage {coverage}, at most {most}");
    assert_eq!(recorded.statistics.lost_samples, 0);
    assert_eq!(recorded.statistics.damaged_records, 0);
    let meta = &recorded.profile.meta;
    assert_eq!(meta.frequency_hz, Some(recorded.setup.frequency_hz));
    assert_eq!(meta.target_cpu_ns.map(|ns| ns / 1_000_000 >= 600), Some(true));
    assert_eq!(recorded.profile.samples.len() as u64, recorded.statistics.samples);
}

#[test]
fn short_lived_processes_are_covered_as_well() {
    // Inherited events, which users without privileges get, miss short-lived processes.
    if !needs(Requirement::WholeMachine) {
        return;
    }
    let Some(burn) = burn() else { return };
    let before = stolen();
    let (_, recorded) = record(&command(burn, &["500", "400"]));
    let stolen = stolen() - before;
    assert_ne!(recorded.setup.scope, Scope::Inherited, "who may sample the machine misses no process");
    let coverage = coverage(&recorded);
    let time = recorded.target_cpu.expect("the kernel accounts it").total().as_secs_f64();
    // Other tests run at the same time, and may change the number of samples of many processes by some hundred.
    let most = 1.1 + stolen / time;
    assert!((0.95..=most).contains(&coverage), "coverage {coverage} of {time} s, {stolen} s stolen");
    let pids: std::collections::BTreeSet<u32> =
        recorded.profile.processes.rows().iter().map(|p| p.pid).collect();
    assert!(pids.len() > 200, "only {} of 400 processes were seen", pids.len());
}

#[test]
fn what_found_no_room_is_counted() {
    let Some(burn) = burn() else { return };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = SamplingOptions { frequency_hz: 20_000, ..SamplingOptions::default() };
    let before = stolen();
    let mut recorder = Recorder::start(&command(burn, &["1000"]), &options).expect("it can be recorded");
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").expect("it is there");
    if most.trim().parse().is_ok_and(|most: u32| most < options.frequency_hz) {
        skip(Requirement::Kernel, "the kernel allows too few samples a second to fill a ring");
        return;
    }
    // The rings, which hold some thousand samples, are not read while ten thousand come, however busy the machine is.
    let pid = recorder.target().pids()[0];
    let used = || plumb_process::procfs::cpu_time(pid).map(|(own, _)| own.total());
    while used().is_some_and(|used| used < Duration::from_millis(500)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    while recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none() {}
    let recorded = recorder.finish();
    let lost = recorded.statistics.lost_samples;
    assert!(lost > 1000, "{lost} lost");
    let both = coverage(&recorded) * (1.0 + lost as f64 / recorded.statistics.samples as f64);
    let most = 1.05 + stolen() - before;
    assert!((0.95..=most).contains(&both), "{both} of the samples are there or lost");
    assert_eq!(recorded.profile.meta.lost_samples, lost);
}

#[test]
fn stacks_reach_the_entry_point() {
    let Some(burn) = burn() else { return };
    let (_, recorded) = record(&command(burn, &["300"]));
    let statistics = &recorded.statistics;
    let complete = statistics.complete as f64 / statistics.samples as f64;
    assert!(complete > 0.97, "{complete} complete, cut: {:?}", statistics.cut);
}

#[test]
fn a_command_that_cannot_start_is_named() {
    if burn().is_none() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let missing =
        Recorder::start(&command("no-such-command-anywhere", &[]), &SamplingOptions::default()).err();
    let missing = missing.expect("there is no such command");
    assert!(matches!(missing, Error::Target(plumb_target::TargetError::Command { .. })));
    assert_eq!((missing.exit_code(), missing.to_string().contains("no-such-command-anywhere")), (127, true));
    // A file without permission to execute it.
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/burn.c");
    let refused = Recorder::start(&command(source, &[]), &SamplingOptions::default()).err();
    assert_eq!(refused.map(|error| error.exit_code()), Some(126));
}

#[test]
fn a_background_process_does_not_hold_the_recorder() {
    if burn().is_none() {
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("background.pid");
    let script = format!("sleep 300 & echo $! > '{}'; exit 3", file.display());
    let (end, recorded) = record(&command("sh", &["-c", &script]));
    assert!(matches!(end, End::Exited(status) if status.code() == Some(3)), "{end:?}");
    let pid: u32 =
        std::fs::read_to_string(&file).expect("the script wrote it").trim().parse().expect("a pid");
    let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it outlives the recording");
    assert!(!cgroup.contains("plumb-"), "it was left in the recording's cgroup: {cgroup}");
    let _ = Command::new("kill").arg(pid.to_string()).status();
    drop(recorded);
}

#[test]
fn a_running_process_is_recorded_until_its_end() {
    let Some(burn) = burn() else { return };
    let mut child = Command::new(burn).arg("1500").spawn().expect("it runs");
    // This test waits for the process, which isn't the recorder's child.
    let pid = child.id();
    let waiter = std::thread::spawn(move || child.wait());
    let (end, recorded) = record(&Target::Processes(vec![pid]));
    assert_eq!(end, End::Gone);
    assert!(recorded.statistics.samples > 0);
    let pids: std::collections::BTreeSet<u32> =
        recorded.profile.processes.rows().iter().map(|p| p.pid).collect();
    assert!(pids.contains(&pid));
    waiter.join().expect("no panic").expect("it was waited for");
    let gone = Recorder::start(&Target::Processes(vec![pid]), &SamplingOptions::default()).err();
    assert!(matches!(gone, Some(Error::Target(plumb_target::TargetError::NoSuchProcess(p))) if p == pid));
}

#[test]
fn deep_stacks_make_the_copies_grow() {
    let Some(program) = burn().and_then(|_| compile("deep", "-O1")) else { return };
    let (_, recorded) = record(&command(&program, &[]));
    assert!(recorded.profile.meta.stack_copy_bytes > SamplingOptions::default().stack_copy);
    assert_eq!(recorded.statistics.lost_samples, 0);
}

/// Code in anonymous memory without unwind rules, which sets up and removes its frames all the time.
#[test]
fn callers_of_jit_code_are_found_at_each_of_its_instructions() {
    let Some(program) = burn().and_then(|_| compile("jit", "-O2")) else { return };
    let (_, recorded) = record(&command(&program, &[]));
    let profile = &recorded.profile;
    let is_jit = |frame: &plumb_profile::Frame| {
        frame
            .dso
            .is_some_and(|dso| matches!(profile.dsos[dso].kind, plumb_profile::DsoKind::Anonymous { .. }))
    };
    let (mut inner, mut wrong) = (0, Vec::new());
    for sample in profile.samples.iter() {
        let frames: Vec<_> = profile
            .frames_of(sample.stack)
            .map(|frame| profile.frames[frame])
            .filter(|frame| frame.kind != plumb_profile::FrameKind::Kernel)
            .collect();
        let Some(leaf) = frames.first().filter(|leaf| is_jit(leaf)) else { continue };
        // The inner function has the first 64 bytes of the page.
        let expected = if leaf.address.0 % 4096 < 64 { 2 } else { 1 };
        inner += u64::from(expected == 2);
        let found = frames.iter().take_while(|frame| is_jit(frame)).count();
        if found != expected {
            wrong.push((leaf.address, found, expected));
        }
    }
    assert!(inner > 100, "{inner} samples of the inner function");
    assert!(wrong.is_empty(), "{} of {inner}: {wrong:x?}", wrong.len());
}

#[test]
fn a_recording_whose_past_is_folded_goes_on_whole() {
    let Some(burn) = burn() else { return };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = command(burn, &["600"]);
    // A clock, whose samples have known weights.
    let options = SamplingOptions { counter: Some(Counter::CpuClock), ..SamplingOptions::default() };
    let mut recorder = Recorder::start(&target, &options).expect("it can be recorded");
    let (mut folds, mut folded) = (0, 0);
    while recorder.step(Duration::from_millis(20)).expect("recording goes on").is_none() {
        let samples = recorder.samples().profile().samples.len();
        if samples - folded > 100 && folds < 3 {
            let TakenProfile { mut profile, running, .. } = recorder.take();
            profile.fold(&Past { kept: 10, times: &[], running: &running, nodes: 1000 });
            recorder.samples_mut().put_back(profile.compacted());
            folded = recorder.samples().profile().samples.len() - 10;
            assert!(folded < samples - 10, "there were equal ones: {folded} of {samples}");
            folds += 1;
        }
    }
    let Recorded { profile, statistics, setup, .. } = recorder.finish();
    assert!(folds > 0, "it took too few samples: {}", statistics.samples);
    let each = 1_000_000_000 / u64::from(setup.frequency_hz);
    let weight: u64 = profile.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(weight / each, statistics.samples, "each weighs the same, and all are there");
    // Only the program's samples, with stacks as complete as ever.
    let whole =
        profile.samples.iter().filter(|sample| sample.stack.is_some_and(|stack| profile.is_complete(stack)));
    assert!(whole.count() * 100 >= profile.samples.len() * 99);
    let is_burn = |sample: &plumb_profile::Sample| {
        let process = &profile.processes[profile.threads[sample.thread].process];
        profile.strings.get(process.exe).ends_with("burn") && process.pid != Process::ENDED
    };
    // Except its samples before exec, when it was a copy of this test, which has ended.
    let others = profile.samples.iter().filter(|sample| !is_burn(sample)).count();
    assert!(others * 100 <= profile.samples.len(), "{others} of {}", profile.samples.len());
}
