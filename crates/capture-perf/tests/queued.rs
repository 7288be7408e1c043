//! Compares recorded run-queue waits with the kernel's own accounting for the program.
//!
//! Needs perf_event_open, a C compiler and kernel accounting; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumb_capture_perf::{Recorder, SamplingOptions};
use plumb_fixtures::{Requirement, compiles, needs, skip};
use plumb_profile::{Meta, Queued};
use plumb_target::{Launch, Target};

/// Time of a program before and after its own accounting, in nanoseconds: being loaded, exiting. During that it also waits
/// for a CPU if others want one.
fn beside_ns() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let wanted = load.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (60e6 * f64::max(wanted / processors as f64, 1.0)) as u64
}

/// One test at a time: each keeps a CPU busy.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The test program in a separate directory, unless this machine can't run these tests.
fn program(name: &str) -> Option<PathBuf> {
    if !needs(Requirement::Perf) {
        return None;
    }
    if times(Path::new("/proc/self/schedstat")).is_none() {
        skip(Requirement::Kernel, "the kernel doesn't account for waiting");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("queued-{name}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/queued.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    Some(program)
}

/// CPU time and run-queue wait, as reported by the kernel or written by the program.
fn times(path: &Path) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

/// Programs that compete for the same CPU.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(program: &Path, count: usize) -> Self {
        let start = |_| Command::new(program).args(["spin", "60000"]).spawn().expect("it runs");
        Spinners((0..count).map(start).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn record(target: &Target) -> Meta {
    let mut recorder = Recorder::start(target, &SamplingOptions::default()).expect("it can be recorded");
    while recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none() {}
    recorder.finish().profile.meta
}

/// Runs the program, and returns the recording and the program's own figures.
fn recorded(program: &Path, arguments: &[&str]) -> (Meta, Queued, (u64, u64)) {
    let told = program.with_extension("told");
    let _ = std::fs::remove_file(&told);
    let arguments = arguments.iter().map(Into::into).chain([told.clone().into()]).collect();
    let launch = Launch { program: program.into(), arguments, environment: Vec::new() };
    let meta = record(&Target::Command(launch));
    let queued = meta.queued.clone().expect("the kernel accounts for it");
    (meta, queued, times(&told).expect("it was written"))
}

/// Whether a time is correct, apart from what the program doesn't see of itself, or did before the recording.
fn is_near(time: u64, truth: u64) -> bool {
    time.abs_diff(truth) <= truth / 20 + beside_ns()
}

#[test]
fn a_command_that_spins_beside_others_waits_as_long_as_the_kernel_says() {
    let Some(program) = program("spin") else { return };
    let _alone = alone();
    let _spinners = Spinners::start(&program, 2);
    let (meta, queued, (ran, waited)) = recorded(&program, &["spin", "1500"]);
    assert!(is_near(queued.ran_ns, ran) && is_near(queued.waited_ns, waited), "{queued:?}, {ran}, {waited}");
    let busiest = queued.busiest.expect("it has a thread");
    assert!(busiest.waited_ns > meta.duration_ns / 4, "two others wanted the same processor: {busiest:?}");
    assert!(busiest.comm.starts_with("queued"), "{busiest:?}");
    // The process was read after its end, before its parent waited for it.
    assert_eq!((queued.unseen_ns, busiest.unseen_ns), (0, 0));
    let known = busiest.ran_ns + busiest.waited_ns + queued.stolen_ns;
    assert!(known > busiest.lived_ns / 10 * 9, "it never slept: {busiest:?}");
}

#[test]
fn a_command_that_sleeps_waits_for_no_processor() {
    let Some(program) = program("sleep") else { return };
    let _alone = alone();
    let (_, queued, (ran, waited)) = recorded(&program, &["sleep", "700"]);
    assert!(is_near(queued.ran_ns, ran) && is_near(queued.waited_ns, waited), "{queued:?}, {ran}, {waited}");
    let busiest = queued.busiest.expect("it has a thread");
    assert!(busiest.lived_ns >= 700_000_000, "{busiest:?}");
    assert!(queued.unseen_ns == 0 && busiest.ran_ns < busiest.lived_ns / 2, "{busiest:?}");
}

/// Whether the kernel reports threads as they end.
fn hears_of_ends() -> bool {
    let is = |space: &str, initial: &str| {
        std::fs::read_link(format!("/proc/self/ns/{space}")).is_ok_and(|link| link.as_os_str() == initial)
    };
    // Inode numbers of the initial namespaces (PROC_USER_INIT_INO, PROC_PID_INIT_INO).
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let may = status.lines().filter_map(|line| line.strip_prefix("CapEff:\t"));
    let may = may.filter_map(|bits| u64::from_str_radix(bits, 16).ok()).any(|bits| bits >> 12 & 1 == 1);
    may && is("user", "user:[4026531837]") && is("pid", "pid:[4026531836]")
}

/// Processes that are too short to be polled.
#[test]
fn of_many_short_processes_it_is_known_where_the_kernel_tells_and_bounded_elsewhere() {
    let Some(program) = program("children") else { return };
    let _alone = alone();
    let _spinners = Spinners::start(&program, 1);
    let (meta, queued, (ran, waited)) = recorded(&program, &["children", "1000"]);
    let lived: u64 = meta.duration_ns;
    assert!(queued.waited_ns <= waited + 5 * beside_ns(), "{queued:?}, {waited}");
    assert!(queued.waited_ns + queued.unseen_ns + beside_ns() >= waited, "{queued:?}, {waited}");
    if hears_of_ends() {
        assert!(queued.unseen_ns < lived / 20, "{queued:?}");
        assert!(
            queued.ran_ns + beside_ns() >= ran && queued.waited_ns + beside_ns() >= waited,
            "{queued:?}, {ran}, {waited}"
        );
    } else {
        assert!(queued.unseen_ns > lived / 4, "{queued:?}");
    }
}

/// For threads that end before the program, only root can know the last part: others get bounds.
#[test]
fn of_threads_that_have_ended_the_truth_is_between_the_bounds() {
    let Some(program) = program("threads") else { return };
    let _alone = alone();
    let (meta, queued, (ran, waited)) = recorded(&program, &["threads", "800"]);
    assert!(waited > 600_000_000, "two threads share a processor: {waited}");
    let unseen = queued.unseen_ns;
    assert!(unseen < 2 * 800_000_000 && (hears_of_ends() || unseen > 0), "{queued:?}");
    assert!(queued.waited_ns <= waited + beside_ns(), "{queued:?}, {waited}");
    assert!(queued.waited_ns + unseen + beside_ns() >= waited, "{queued:?}, {waited}");
    assert!(queued.ran_ns + unseen + beside_ns() >= ran, "{queued:?}, {ran}");
    let cpu = meta.target_cpu_ns.expect("the kernel accounts it");
    assert!(queued.ran_ns <= cpu + beside_ns(), "{queued:?}, {cpu}");
}

#[test]
fn of_a_running_process_only_what_it_waits_meanwhile_counts() {
    let Some(program) = program("attached") else { return };
    let _alone = alone();
    let spinners = Spinners::start(&program, 2);
    let pid = spinners.0[0].id();
    // Waits that don't count.
    std::thread::sleep(Duration::from_millis(500));
    let schedstat = PathBuf::from(format!("/proc/{pid}/schedstat"));
    let before = times(&schedstat).expect("it runs");
    let mut recorder = Recorder::start(&Target::Processes(vec![pid]), &SamplingOptions::default())
        .expect("it can be recorded");
    let begun = times(&schedstat).expect("it runs");
    while recorder.elapsed() < Duration::from_millis(1500) {
        assert!(recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none());
    }
    let ending = times(&schedstat).expect("it runs");
    let queued = recorder.finish().profile.meta.queued.expect("the kernel accounts for it");
    let ended = times(&schedstat).expect("it runs");
    let within = |time: u64, least: (u64, u64), most: (u64, u64)| {
        (least.1 - least.0..=most.1 - most.0).contains(&time)
    };
    let is_wait = within(queued.waited_ns, (begun.1, ending.1), (before.1, ended.1));
    assert!(is_wait, "{queued:?}, {before:?}, {begun:?}, {ending:?}, {ended:?}");
    let is_run = within(queued.ran_ns, (begun.0, ending.0), (before.0, ended.0));
    assert!(is_run, "{queued:?}, {before:?}, {begun:?}, {ending:?}, {ended:?}");
    assert!(queued.waited_ns > 300_000_000, "another wanted the same processor: {queued:?}");
}
