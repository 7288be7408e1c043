//! Each feature of the programs, found out by loading what it takes into this kernel.
//!
//! Programs that watch something are started, as they are for a recording, and ended again at once; nothing that they see counts, as
//! nothing begins. Those that take samples are attached to an event that is never switched on.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::refusal::{LoadError, refused};
use crate::{
    CallFacts, CallFilter, CallSums, Calls, Faults, LoadOptions, OffCpu, Per, ProcessSums, Programs, Stat,
};

/// Bytes of the ring of system calls: as few as the kernel takes.
const RING_BYTES: u32 = 1 << 16;

/// What programs in the kernel are there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Walking the stacks of a timer's samples.
    Stacks,
    /// Frames of Python programs with them.
    Python,
    /// Sampling tracepoints, with stacks walked.
    Tracepoints,
    /// Sampling functions of programs, with stacks walked.
    Functions,
    /// Time off the processor.
    OffCpu,
    /// Single system calls.
    Calls,
    /// Counting system calls.
    CallCounts,
    /// How long they take.
    CallTimes,
    /// Counting and timing them for services.
    ServiceCalls,
    /// Single page faults.
    Faults,
    /// The counts of a command.
    Stat,
}

impl Feature {
    /// All, in the order in which they are tried.
    pub const ALL: [Feature; 11] = [
        Feature::Stacks,
        Feature::Python,
        Feature::Tracepoints,
        Feature::Functions,
        Feature::OffCpu,
        Feature::Calls,
        Feature::CallCounts,
        Feature::CallTimes,
        Feature::ServiceCalls,
        Feature::Faults,
        Feature::Stat,
    ];

    /// The version of Linux that has what the feature takes.
    pub fn since(self) -> &'static str {
        match self {
            // Programs at raw tracepoints are told which one it is.
            Feature::Tracepoints => "6.10",
            // bpf_loop and bpf_find_vma.
            _ => "5.17",
        }
    }
}

/// What became of a feature.
#[derive(Debug)]
pub struct Trial {
    /// The feature.
    pub feature: Feature,
    /// How long trying it took; zero where it was tried with the one before.
    pub took: Duration,
    /// What works less well than on a newer kernel, in a sentence; or why the feature is not to be had.
    pub result: Result<Option<&'static str>, LoadError>,
}

/// What tries one feature.
type Attempt = fn() -> Result<Option<&'static str>, LoadError>;

/// What attaches a program to an event of this thread that never counts, and takes it off again.
pub type Attach = fn(BorrowedFd<'_>) -> io::Result<()>;

/// Tries every feature, all at once: most of it is waiting until the kernel has seen that nobody uses a program any more.
pub fn try_all(attach: Attach) -> Vec<Trial> {
    let others: [(Feature, Attempt); 7] = [
        (Feature::OffCpu, off_cpu),
        (Feature::Calls, || {
            let filter =
                CallFilter { min_ns: 0, failed_only: false, counts_met: false, ring_bytes: RING_BYTES };
            Calls::load(filter).map(|_| None)
        }),
        (Feature::CallCounts, || counted(false)),
        (Feature::CallTimes, || counted(true)),
        (Feature::ServiceCalls, || ProcessSums::load(ProcessSums::ROOM).map(|_| None)),
        (Feature::Faults, || Faults::load().map(|_| None)),
        (Feature::Stat, || Stat::load(true).map(|_| None)),
    ];
    std::thread::scope(|scope| {
        let threads = others.map(|(feature, attempt)| scope.spawn(move || timed(feature, attempt)));
        let mut trials = stacks(attach);
        // A panic in one is a fault of plumb's, which is to be seen.
        trials.extend(
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        trials
    })
}

fn timed(feature: Feature, attempt: Attempt) -> Trial {
    let begin = Instant::now();
    let result = attempt();
    Trial { feature, took: begin.elapsed(), result }
}

/// Those that share an object with the program for a timer's samples.
fn stacks(attach: Attach) -> Vec<Trial> {
    let begin = Instant::now();
    let trial = |feature, took, result| Trial { feature, took, result };
    let mut programs = match Programs::load(LoadOptions { places: true, ..LoadOptions::default() }) {
        Ok(programs) => programs,
        Err(error) => {
            let others = [Feature::Python, Feature::Tracepoints, Feature::Functions];
            let others = others.map(|feature| trial(feature, Duration::ZERO, Err(error.again())));
            let first = trial(Feature::Stacks, begin.elapsed(), Err(error));
            return std::iter::once(first).chain(others).collect();
        }
    };
    let attached =
        programs.try_attaching(attach).map_err(refused("to attach the program sample to an event"));
    let note = (!programs.watches_maps())
        .then_some("changes of mappings are learned up to 0.1 s late (Linux 6.1 or newer: at once)");
    let python = programs.take_without_python().map_or(Ok(None), Err);
    let (tracepoints, functions) = programs.take_places();
    vec![
        trial(Feature::Stacks, begin.elapsed(), attached.map(|()| note)),
        trial(Feature::Python, Duration::ZERO, python),
        trial(Feature::Tracepoints, Duration::ZERO, tracepoints.map(|()| None)),
        trial(Feature::Functions, Duration::ZERO, functions.map(|()| None)),
    ]
}

fn off_cpu() -> Result<Option<&'static str>, LoadError> {
    let off_cpu = OffCpu { min_ns: 0, stacks_per_second: 1000, walks: true, looks_back: true };
    let programs = Programs::load(LoadOptions { off_cpu: Some(off_cpu), ..LoadOptions::default() })?;
    if let Some(error) = programs.without_threads() {
        return Err(error.again());
    }
    Ok((!programs.looks_back()).then_some(
        "stacks are taken as threads go, before it is known for how long (Linux 6.15 or newer: as they come back)",
    ))
}

fn counted(is_timed: bool) -> Result<Option<&'static str>, LoadError> {
    CallSums::load(is_timed, Per::File, |_| CallFacts::default()).map(|_| None)
}
