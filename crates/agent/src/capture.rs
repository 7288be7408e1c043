//! Continuous sampling of the whole machine, and symbolization of its samples.
//!
//! Invariant: memory holds the current window and the running processes only. [`Capture::take`] removes the window and everything that only it
//! needed.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_capture_api::{KernelUnwinder, Unmeasured};
use plumb_capture_bpf::{LoadOptions, Measured, Programs};
use plumb_capture_perf::{
    Code, Counter, EndedCgroups, EventSpec, Recorder, SamplingOptions, TakenProfile, Trigger,
    release_program, resident_memory, trim_memory,
};
use plumb_profile::{BuildId, DsoId, Profile};
use plumb_symbolize::{Options, Session, make_readable};
use plumb_target::{End, Target};

use crate::error::AgentError;
use crate::options::AgentOptions;

/// Longest wait for symbols before their window is sent. The server cannot symbolize kernel functions later.
const LAST_NAMES: Duration = Duration::from_secs(2);
/// Ring size per CPU, in bytes. Small, because samples are few.
const RING: u32 = 256 << 10;
/// Sampling period of page faults per CPU. A fixed period, because the kernel's frequency mode would weight the samples of a burst wrongly. A prime,
/// because programs touch memory in steps of powers of two.
const FAULTS_PERIOD: u64 = 997;
/// Interval between two attempts to return freed memory to the system.
const TRIM: Duration = Duration::from_secs(15);

/// A running capture of the machine.
pub(crate) struct Capture {
    recorder: Recorder,
    names: Session,
    /// Build ids of files that the server has.
    sent: HashSet<BuildId>,
    max_memory: u64,
    trimmed: Instant,
    /// Size of the profile at the last inspection.
    looked: Rows,
}

/// The files whose symbolization is left to the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftNames {
    /// Files with a build id that the server cannot have: their frames are symbolized here.
    pub unsent: HashSet<BuildId>,
    /// Files that the server has. A file that no path leads to is symbolized here unless it is one of these: it may be gone when the server asks for
    /// it.
    pub sent: HashSet<BuildId>,
}

/// A window that was taken out of the recorder.
pub(crate) struct TakenWindow {
    /// The samples, symbolized.
    pub profile: Profile,
    /// Control groups of the processes that ended in it.
    pub cgroups: EndedCgroups,
    /// Files that were symbolized here because no path leads to them, although the server may have them.
    pub held: Vec<BuildId>,
}

/// Number of rows in a profile's tables.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    frames: usize,
    processes: usize,
}

impl Rows {
    /// New frames and processes that can be inspected within a millisecond.
    const FEW: Rows = Rows { frames: 256, processes: 4 };

    fn are_few_more(self, than: Rows) -> bool {
        self.frames <= than.frames + Self::FEW.frames
            && self.processes <= than.processes + Self::FEW.processes
    }
}

impl Capture {
    /// Starts to sample CPU time, or to measure a quantity instead. The recorders of the agent share its memory limit.
    pub fn begin(options: &AgentOptions, measured: Option<Measured>) -> Result<Self, AgentError> {
        plumb_capture_perf::return_freed_memory();
        let max_memory = options.max_memory / if options.profiles.off_cpu_min_ns.is_some() { 2 } else { 1 };
        let sampling = SamplingOptions {
            frequency_hz: options.frequency_hz,
            each_if_rare: false,
            also: if options.profiles.page_faults && measured.is_none() {
                vec![page_faults()]
            } else {
                Vec::new()
            },
            // One recorder that handles signals is enough.
            heeds_signals: measured.is_none(),
            // The agent writes only to its spool.
            keep_tables: false,
            overflow_directory: Some(options.spool.directory.as_path().into()),
            // Each copied stack may require rereading a large program's tables that were evicted; this has room for two such programs.
            unwind_memory: part(max_memory, 4),
            ..SamplingOptions::default()
        };
        let unwinder = unwinder(measured, max_memory)?;
        let recorder = Recorder::start_with(&Target::Machine, &sampling, unwinder)?;
        for limit in &recorder.setup().limits {
            tracing::warn!("{limit}");
        }
        let names = Options {
            // Function names suffice to locate the time spent, and take a tenth of the memory that lines take.
            lines: false,
            threads: 1,
            cache: None,
            max_memory: Some(max_memory / 8),
            max_resident: Some(options.max_memory),
            ..Options::default()
        };
        let trimmed = Instant::now();
        let names = Session::begin_live(names);
        let (sent, looked) = (HashSet::new(), Rows::default());
        Ok(Self { recorder, names, sent, max_memory: options.max_memory, trimmed, looked })
    }

    /// Sample rate, in samples per second of CPU time.
    pub fn frequency_hz(&self) -> u32 {
        self.recorder.setup().frequency_hz
    }

    /// Changes the sample rate, in samples per second of CPU time.
    pub fn set_frequency(&mut self, hz: u32) {
        if let Err(error) = self.recorder.set_frequency(hz) {
            tracing::warn!(%error, "the sampling rate stays as it is");
        }
    }

    /// Samples that the kernel has lost so far.
    pub fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    /// Off-CPU time so far that is in no window.
    pub fn unmeasured(&mut self) -> Unmeasured {
        self.recorder.unmeasured().unwrap_or_default()
    }

    /// Sleeps until there is work or `timeout` has passed, and does the work. Returns `true` if a signal ends the agent.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, AgentError> {
        let end = self.recorder.step(timeout)?;
        Ok(matches!(end, Some(End::Signal(_) | End::Gone | End::Exited(_))))
    }

    /// Leaves the symbolization of files with a build id to the server, except those that it cannot have.
    pub fn leave_identified(&mut self, left: LeftNames) {
        self.names.leave_identified(left.unsent);
        self.sent = left.sent;
    }

    /// Starts symbolizing new frames if `finds_names`, then calls `look` with the profile so far.
    pub fn look(&mut self, finds_names: bool, look: impl FnOnce(&Profile)) {
        let (names, profile) = (&mut self.names, self.recorder.profile());
        let now = Rows { frames: profile.frames.len(), processes: profile.processes.len() };
        let is_brief = now.are_few_more(self.looked);
        self.looked = now;
        let work = |profile: &mut Profile| {
            if finds_names {
                names.round(profile);
                names.take(profile);
            }
            look(profile);
        };
        match is_brief {
            true => self.recorder.briefly(work),
            false => self.recorder.meanwhile(work),
        }
    }

    /// Takes out the samples since the last call, symbolized.
    pub fn take(&mut self) -> TakenWindow {
        let held = self.find_last_names();
        let TakenProfile { profile: mut taken, cgroups, .. } = self.recorder.take();
        self.looked = Rows::default();
        self.names.renew();
        make_readable(&mut taken);
        TakenWindow { profile: taken, cgroups, held }
    }

    /// Symbolizes the frames that still lack names, except those left to the server. Returns the files among them that the server may have as well.
    fn find_last_names(&mut self) -> Vec<BuildId> {
        let Self { recorder, names, sent, .. } = self;
        let vanished = recorder.vanished();
        recorder.meanwhile(|profile| {
            let build_id = |(dso, _): &(DsoId, File)| profile.dsos[*dso].build_id.clone();
            let is_left = |one: &_| build_id(one).is_some_and(|build_id| sent.contains(&build_id));
            let vanished: Vec<_> = vanished.into_iter().filter(|one| !is_left(one)).collect();
            let held = vanished.iter().filter_map(build_id).collect();
            names.round(profile);
            names.round_held(profile, vanished);
            names.settle(LAST_NAMES);
            names.take(profile);
            held
        })
    }

    /// Returns freed memory to the system if [`TRIM`] has passed and the agent uses more than half of its limit.
    pub fn trim(&mut self) {
        let is_worth = resident_memory().is_some_and(|(resident, _)| resident > self.max_memory / 2);
        if self.trimmed.elapsed() >= TRIM && is_worth {
            self.trimmed = Instant::now();
            self.recorder.meanwhile(|_| {
                trim_memory();
                release_program();
            });
        }
    }

    /// Stops sampling. Returns the samples since the last [`Capture::take`], symbolized.
    pub fn end(mut self) -> Ended {
        self.find_last_names();
        let names = &mut self.names;
        let recorded = self.recorder.finish();
        let mut profile = recorded.profile;
        // Frames of the last records.
        names.round(&profile);
        names.settle(LAST_NAMES);
        names.take(&mut profile);
        make_readable(&mut profile);
        let statistics = recorded.statistics;
        Ended {
            profile,
            cgroups: recorded.cgroups,
            samples: statistics.samples,
            lost: statistics.lost_samples,
            unmeasured: recorded.unmeasured.unwrap_or_default(),
        }
    }
}

/// Result of a capture that ended.
pub(crate) struct Ended {
    /// The last window.
    pub profile: Profile,
    /// Control groups of the processes that ended in it.
    pub cgroups: EndedCgroups,
    /// Samples of all windows.
    pub samples: u64,
    /// Samples that the kernel lost.
    pub lost: u64,
    /// Off-CPU time that is in no window.
    pub unmeasured: Unmeasured,
}

/// The page-fault event. Its stacks are copied: while a BPF program unwound them, clock samples that interrupt it would be dropped.
fn page_faults() -> EventSpec {
    let counter = Counter::Trigger(Arc::new(Trigger::page_faults()));
    EventSpec { counter, code: Code::All, period: Some(FAULTS_PERIOD), is_copied: true }
}

/// One `of`-th of the memory limit, in bytes.
fn part(max_memory: u64, of: u64) -> usize {
    usize::try_from(max_memory / of).unwrap_or(usize::MAX)
}

/// The kernel unwinder, or `None` if this kernel has no support for it. A measurement requires it and fails instead.
fn unwinder(
    measured: Option<Measured>,
    max_memory: u64,
) -> Result<Option<Box<dyn KernelUnwinder>>, AgentError> {
    let load = LoadOptions {
        // The account slows each run of every program on the machine, and an agent never ends.
        watches_others: false,
        // Stacks that are counted have the time of their last sample only, and bursts are found by the times of all.
        counting: measured.is_some(),
        table_memory: part(max_memory, 10) * 3,
        ring_memory: RING,
        measure: measured,
        tells_cgroups: true,
        ..LoadOptions::default()
    };
    match Programs::load(load) {
        Ok(programs) => Ok(Some(Box::new(programs))),
        Err(error) if measured.is_some() => Err(AgentError::OffCpu(error)),
        Err(error) => {
            tracing::warn!("stacks are copied, which costs more, not walked in the kernel: {error}");
            Ok(None)
        }
    }
}
