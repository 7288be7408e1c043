//! Tests each feature by loading its programs into this kernel.
//!
//! Programs at tracepoints are started as for a recording and stopped at once; they record nothing, as
//! recording is not started. Sampling programs are attached to an event that is never enabled.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::refusal::{LoadError, refused};
use crate::{
    CallFacts, CallFilter, CallSums, Calls, Faults, LoadOptions, Measured, OffCpu, Per, ProcessSums,
    Programs, Stat,
};

/// Bytes of the system-call ring: the kernel's minimum.
const RING_BYTES: u32 = 1 << 16;

/// A feature that needs BPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Unwinding the stacks of a timer's samples.
    Stacks,
    /// Including frames of interpreted programs.
    Scripts,
    /// Sampling tracepoints, with stacks.
    Tracepoints,
    /// Sampling functions of programs, with stacks.
    Functions,
    /// Off-CPU time.
    OffCpu,
    /// Tracing single system calls.
    Calls,
    /// Counting system calls.
    CallCounts,
    /// Timing system calls.
    CallTimes,
    /// Counting and timing them for services.
    ServiceCalls,
    /// Tracing single page faults.
    Faults,
    /// Counts for a command.
    Stat,
}

impl Feature {
    /// All features, in the order of testing.
    pub const ALL: [Feature; 11] = [
        Feature::Stacks,
        Feature::Scripts,
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

    /// The version of Linux that supports the feature.
    pub fn since(self) -> &'static str {
        match self {
            // Raw tracepoint programs get a cookie that identifies the probe.
            Feature::Tracepoints => "6.10",
            // bpf_loop and bpf_find_vma.
            _ => "5.17",
        }
    }
}

/// The result of testing a feature.
#[derive(Debug)]
pub struct Trial {
    /// The feature.
    pub feature: Feature,
    /// Time that the test took; zero if it was tested with the one before.
    pub took: Duration,
    /// A limitation compared with newer kernels, in a sentence; or the reason why the feature is not available.
    pub result: Result<Option<&'static str>, LoadError>,
}

/// Tests one feature.
type Attempt = fn() -> Result<Option<&'static str>, LoadError>;

/// Attaches a program to an event of this thread that never counts, and detaches it.
pub type Attach = fn(BorrowedFd<'_>) -> io::Result<()>;

/// Tests all features at once: most of the time is spent waiting for the kernel to release unused programs.
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

/// Tests the programs that share an object with the program for a timer's samples.
fn stacks(attach: Attach) -> Vec<Trial> {
    let begin = Instant::now();
    let trial = |feature, took, result| Trial { feature, took, result };
    let mut programs = match Programs::load(LoadOptions { places: true, ..LoadOptions::default() }) {
        Ok(programs) => programs,
        Err(error) => {
            let others = [Feature::Scripts, Feature::Tracepoints, Feature::Functions];
            let others = others.map(|feature| trial(feature, Duration::ZERO, Err(error.again())));
            let first = trial(Feature::Stacks, begin.elapsed(), Err(error));
            return std::iter::once(first).chain(others).collect();
        }
    };
    let attached =
        programs.try_attaching(attach).map_err(refused("to attach the program sample to an event"));
    let note = (!programs.watches_maps())
        .then_some("changes of mappings are learned up to 0.1 s late (Linux 6.1 or newer: at once)");
    let scripts = programs.take_without_scripts().map_or(Ok(None), Err);
    let (tracepoints, functions) = programs.take_places();
    vec![
        trial(Feature::Stacks, begin.elapsed(), attached.map(|()| note)),
        trial(Feature::Scripts, Duration::ZERO, scripts),
        trial(Feature::Tracepoints, Duration::ZERO, tracepoints.map(|()| None)),
        trial(Feature::Functions, Duration::ZERO, functions.map(|()| None)),
    ]
}

fn off_cpu() -> Result<Option<&'static str>, LoadError> {
    let off_cpu = OffCpu { min_ns: 0, stacks_per_second: 1000, walks: true, looks_back: true };
    let programs =
        Programs::load(LoadOptions { measure: Some(Measured::OffCpu(off_cpu)), ..LoadOptions::default() })?;
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
