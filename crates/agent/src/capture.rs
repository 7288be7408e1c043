//! Sampling of the whole machine that goes on for ever, and names for what was sampled.
//!
//! Invariant: what is kept is of one window and of what runs: [`Capture::take`] takes the window out with all that only it needed.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_capture_api::{KernelUnwinder, Unmeasured};
use plumb_capture_bpf::{LoadOptions, OffCpu, Programs};
use plumb_capture_perf::{
    Code, Counter, EndedCgroups, EventSpec, Recorder, SamplingOptions, TakenProfile, Trigger,
    release_program, resident_memory, trim_memory,
};
use plumb_profile::{BuildId, DsoId, Profile};
use plumb_symbolize::{Options, Session, make_readable};
use plumb_target::{End, Target};

use crate::error::AgentError;
use crate::options::AgentOptions;

/// Longest wait for names before their window is sent: of the kernel's functions no server finds them later.
const LAST_NAMES: Duration = Duration::from_secs(2);
/// Bytes for each processor in which samples wait, of which there are few.
const RING: u32 = 256 << 10;
/// The event of page faults.
pub(crate) const PAGE_FAULTS: &str = Trigger::PAGE_FAULTS;
/// Of so many page faults of a processor one is a sample. By the kernel's frequency mode those of bursts would stand for more or less than they
/// are. A prime: programs touch memory in steps of powers of two.
const FAULTS_PERIOD: u64 = 997;
/// Time between two times that freed memory is given back.
const TRIM: Duration = Duration::from_secs(15);

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// Processor time, by samples.
    Cpu,
    /// Time off the processor, as the kernel switches threads. What is shorter than this, in nanoseconds, is only summed up.
    OffCpu(u64),
}

/// The machine being sampled.
pub(crate) struct Capture {
    recorder: Recorder,
    names: Session,
    /// Files that the server has.
    sent: HashSet<BuildId>,
    max_memory: u64,
    trimmed: Instant,
    /// What the profile had at the last look.
    looked: Rows,
}

/// Whose names are left to the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftNames {
    /// Files with a build id that the server can't have: their frames are named here.
    pub unsent: HashSet<BuildId>,
    /// Files that the server has. What no path leads to is named here unless it is one of these: it may be gone when the server asks.
    pub sent: HashSet<BuildId>,
}

/// A window that was taken out.
pub(crate) struct TakenWindow {
    /// What was sampled, with names.
    pub profile: Profile,
    /// In which control groups processes ended.
    pub cgroups: EndedCgroups,
    /// Files that were named as no path leads to them, though the server may have them.
    pub held: Vec<BuildId>,
}

/// Rows of a profile that are to be looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    frames: usize,
    processes: usize,
}

impl Rows {
    /// New frames and processes that are looked at in a millisecond.
    const FEW: Rows = Rows { frames: 256, processes: 4 };

    fn are_few_more(self, than: Rows) -> bool {
        self.frames <= than.frames + Self::FEW.frames
            && self.processes <= than.processes + Self::FEW.processes
    }
}

impl Capture {
    /// Begins. All that is measured shares the memory that there may be.
    pub fn begin(options: &AgentOptions, measured: Measured) -> Result<Self, AgentError> {
        plumb_capture_perf::return_freed_memory();
        let max_memory = options.max_memory / if options.profiles.off_cpu_min_ns.is_some() { 2 } else { 1 };
        let sampling = SamplingOptions {
            frequency_hz: options.frequency_hz,
            each_if_rare: false,
            also: if options.profiles.page_faults && measured == Measured::Cpu {
                vec![page_faults()]
            } else {
                Vec::new()
            },
            // Of two recorders one is enough.
            heeds_signals: measured == Measured::Cpu,
            // It writes nowhere but into its spool.
            keep_tables: false,
            overflow_directory: Some(options.spool.directory.as_path().into()),
            // For each stack that is copied, what does not stay of a large program is read again as a whole: two such have room.
            unwind_memory: part(max_memory, 4),
            ..SamplingOptions::default()
        };
        let unwinder = unwinder(options, measured, max_memory)?;
        let recorder = Recorder::start_with(&Target::Machine, &sampling, unwinder)?;
        for limit in &recorder.setup().limits {
            tracing::warn!("{limit}");
        }
        let names = Options {
            // Function names are enough to find out where time goes, and take a tenth of the memory.
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

    /// Samples per second of processor time that are taken.
    pub fn frequency_hz(&self) -> u32 {
        self.recorder.setup().frequency_hz
    }

    /// Samples so many times a second of processor time from now on.
    pub fn set_frequency(&mut self, hz: u32) {
        if let Err(error) = self.recorder.set_frequency(hz) {
            tracing::warn!(%error, "the sampling rate stays as it is");
        }
    }

    /// Samples that the kernel lost so far.
    pub fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    /// Times off the processor so far that are in no window.
    pub fn unmeasured(&mut self) -> Unmeasured {
        self.recorder.unmeasured().unwrap_or_default()
    }

    /// Sleeps until there is something to do, `timeout` at most, and does it. `true`: a signal ends it.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, AgentError> {
        let end = self.recorder.step(timeout)?;
        Ok(matches!(end, Some(End::Signal(_) | End::Gone | End::Exited(_))))
    }

    /// Leaves frames of files with a build id to the server, but for those that it can't have.
    pub fn leave_identified(&mut self, left: LeftNames) {
        self.names.leave_identified(left.unsent);
        self.sent = left.sent;
    }

    /// Has names found for what is new, if `finds_names`, and shows the profile so far.
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

    /// Takes out what was sampled since the last time, with names.
    pub fn take(&mut self) -> TakenWindow {
        let held = self.find_last_names();
        let TakenProfile { profile: mut taken, cgroups, .. } = self.recorder.take();
        self.looked = Rows::default();
        self.names.renew();
        make_readable(&mut taken);
        TakenWindow { profile: taken, cgroups, held }
    }

    /// Has the names found that are still missing, but those that are left to the server. Which files the server may have besides.
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

    /// Gives freed memory back, if it is time to.
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

    /// Stops, and gives back what was sampled since the last time, with names.
    pub fn end(mut self) -> Ended {
        self.find_last_names();
        let names = &mut self.names;
        let recorded = self.recorder.finish();
        let mut profile = recorded.profile;
        // What came with the last records.
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

/// What is left at the end.
pub(crate) struct Ended {
    /// The last window.
    pub profile: Profile,
    /// In which control groups processes ended in it.
    pub cgroups: EndedCgroups,
    /// Samples of all windows.
    pub samples: u64,
    /// Samples that the kernel lost.
    pub lost: u64,
    /// Times off the processor that are in no window.
    pub unmeasured: Unmeasured,
}

/// Page faults. Their stacks are copied: a program that walked them would have samples of the clock that interrupt it dropped.
fn page_faults() -> EventSpec {
    let counter = Counter::Trigger(Arc::new(Trigger::page_faults()));
    EventSpec { counter, code: Code::All, period: Some(FAULTS_PERIOD), is_copied: true }
}

/// A part of the memory that there may be.
fn part(max_memory: u64, of: u64) -> usize {
    usize::try_from(max_memory / of).unwrap_or(usize::MAX)
}

/// What walks stacks in the kernel, if this one can. Without it no time off the processor is measured.
fn unwinder(
    options: &AgentOptions,
    measured: Measured,
    max_memory: u64,
) -> Result<Option<Box<dyn KernelUnwinder>>, AgentError> {
    let off_cpu = match measured {
        Measured::Cpu => None,
        Measured::OffCpu(min_ns) => {
            Some(OffCpu { min_ns, stacks_per_second: options.frequency_hz, walks: true, looks_back: true })
        }
    };
    let table_memory = part(max_memory, 10) * 3;
    let tells_cgroups = true;
    let load =
        // The account slows each run of every program on the machine, and an agent never ends.
        LoadOptions { watches_others: false, table_memory, ring_memory: RING, off_cpu, tells_cgroups, ..LoadOptions::default() };
    match Programs::load(load) {
        Ok(programs) => Ok(Some(Box::new(programs))),
        Err(error) if off_cpu.is_some() => Err(AgentError::OffCpu(error)),
        Err(error) => {
            tracing::warn!("stacks are copied, which costs more, not walked in the kernel: {error}");
            Ok(None)
        }
    }
}
