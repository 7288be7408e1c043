//! Shared parts of tests: loading the programs, programs to record, recordings.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_capture_bpf::{LoadOptions, Programs};
use plumb_capture_perf::{Recorded, Recorder};
use plumb_fixtures::{Requirement, needs};
use plumb_process::usage::own_cpu_time;
use plumb_profile::{FrameKind, Profile, Sample};
use plumb_target::{Launch, Target};

/// Loads the programs; `None`, after saying why, if they are not available.
pub fn load(options: LoadOptions) -> Option<Programs> {
    if !needs(Requirement::Bpf) || !needs(Requirement::Cc) {
        return None;
    }
    Some(Programs::load(options).unwrap_or_else(|error| panic!("{error}")))
}

/// Value of [`plumb_fixtures::host::stolen`] when this test got the lock.
static STOLEN_BEFORE: AtomicU64 = AtomicU64::new(0);

/// Stolen time since then, in seconds.
#[allow(dead_code, reason = "not all tests compare samples with an account")]
pub fn stolen() -> f64 {
    plumb_fixtures::host::stolen() - f64::from_bits(STOLEN_BEFORE.load(Ordering::Relaxed))
}

/// Samples per second of CPU time: the requested rate, unless the kernel allows less.
pub fn rate(recorded: &Recorded) -> f64 {
    f64::from(recorded.setup.frequency_hz)
}

/// Statistical error of the number of samples, for a process sampled by the CPUs' own timers: if others run
/// as well, each tick hits it with the probability of its share of the time. Three standard deviations, and zero if it runs all the time.
pub fn chance(recorded: &Recorded) -> f64 {
    let used = recorded.target_cpu.expect("it is accounted").total().as_secs_f64();
    let share = (used * 1e9 / recorded.profile.meta.duration_ns as f64).min(1.0);
    3.0 * (used * rate(recorded) * (1.0 - share)).sqrt()
}

/// One recording of the machine at a time: two CPUs can't handle more.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    STOLEN_BEFORE.store(plumb_fixtures::host::stolen().to_bits(), Ordering::Relaxed);
    alone
}

/// A test's own directory, removed when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("plumb-bpf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Compiles a source of this directory, or with a relative path.
    pub fn compile(&self, source: &str, name: &str, options: &[&str]) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let out = self.path(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o", &out]).arg(&source).args(options);
        assert!(compiler.status().expect("cc is there").success(), "{} compiles", source.display());
        out
    }

    /// The program of capture-perf's tests that uses CPU time.
    pub fn burn(&self) -> String {
        self.compile("../../../capture-perf/tests/programs/burn.c", "burn", &[])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command with its output going to a file.
pub fn command(words: &[&str]) -> Target {
    let (program, arguments) = words.split_first().expect("a command has a name");
    let arguments = arguments.iter().map(Into::into).collect();
    Target::Command(Launch { program: program.into(), arguments, environment: Vec::new() })
}

/// Records with the programs until the target ends, or for at most `most`.
pub fn record(programs: Programs, target: &Target, most: Option<Duration>) -> Recorded {
    let options = plumb_capture_perf::SamplingOptions::default();
    record_at(programs, target, most, options)
}

/// As [`record`], with options.
pub fn record_at(
    programs: Programs,
    target: &Target,
    most: Option<Duration>,
    options: plumb_capture_perf::SamplingOptions,
) -> Recorded {
    record_awake(programs, target, most, options).0
}

/// As [`record_at`]; also returns how long at most the recorder was kept from its rings: time in which it neither worked nor chose to
/// wait, as with more programs than CPUs, or an exhausted quota.
pub fn record_awake(
    programs: Programs,
    target: &Target,
    most: Option<Duration>,
    options: plumb_capture_perf::SamplingOptions,
) -> (Recorded, Duration) {
    const WAIT: Duration = Duration::from_millis(20);
    let mut recorder =
        Recorder::start_beside(target, &options, Some(Box::new(programs)), None).expect("recording begins");
    let mut kept_away = Duration::ZERO;
    loop {
        let (begin, used) = (Instant::now(), own_cpu_time().total());
        let ended = recorder.step(WAIT).expect("recording goes on").is_some();
        let worked = own_cpu_time().total() - used;
        kept_away = kept_away.max(begin.elapsed().saturating_sub(worked + WAIT));
        if ended || most.is_some_and(|most| recorder.elapsed() >= most) {
            return (recorder.finish(), kept_away);
        }
    }
}

/// The user frames of a sample, innermost first: path of the file and address in it.
pub fn user_frames(profile: &Profile, sample: &Sample) -> Vec<(String, u64)> {
    let frames = profile.frames_of(sample.stack).map(|id| profile.frames[id]);
    let users = frames.filter(|frame| frame.kind == FrameKind::User);
    let path = |frame: &plumb_profile::Frame| {
        let dso = frame.dso.map(|dso| profile.dsos[dso].path);
        dso.map_or(String::new(), |path| profile.strings.get(path).to_owned())
    };
    users.map(|frame| (path(&frame), frame.lookup().0)).collect()
}

/// Whether a sample's stack reaches its root.
pub fn is_complete(profile: &Profile, sample: &Sample) -> bool {
    sample.stack.is_some_and(|stack| profile.is_complete(stack))
}
