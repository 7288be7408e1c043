//! A live recording: sums of the samples in a window, with names as they are found,
//! and rates.
//!
//! Invariant: memory is bounded for any duration: the past is taken out, folded and put back without rows that no sample uses, and
//! sums of windows between ticks stay correct. Elsewhere: drawing.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use plumb_analyze::{Pulse, Rates, Tick, is_clock};
use plumb_capture_perf::{CoverageCounters, trim_memory};
use plumb_process::usage::{CpuTime, monotonic_ns, own_cpu_time};
use plumb_profile::{Past, ProcessId, Profile};
use plumb_symbolize::{Options, make_readable};
use plumb_target::{Descendants, Prints, Running};

use crate::error::RecordError;
use crate::notices::Notices;
use crate::request::RecordRequest;
use crate::session::Step;
use crate::windowed::{TakenWindow, WindowedRecording};
use crate::{memory, own_probes};

/// Shortest time between two look-ups of unnamed frames. The first is done at once.
const NAMES: Duration = Duration::from_millis(300);

/// Approximate bytes of a sample, a stack node, a lifetime, and a frame with its function and name, including the tables that find equal ones.
const BYTES: Rows = Rows { samples: 50, nodes: 50, lives: 100, frames: 250 };

/// Longest wait for names before their profile is taken out.
const LAST_NAMES: Duration = Duration::from_millis(300);

/// Longest wait for names of a printed table: reading the kernel's takes that long on a busy machine.
const PRINTED_NAMES: Duration = Duration::from_secs(2);

/// Largest number of readings of coverage, which is more than there are ticks.
const MOST_READINGS: usize = 4096;

/// Longest time between two ticks, even without a query.
const TICK: Duration = Duration::from_secs(2);

/// The samples in a window of a recording, summed up.
#[derive(Default)]
pub struct WindowSum {
    /// Rates in the window.
    pub rates: Rates,
    /// Samples per second, if a clock is sampled.
    pub clock_hz: Option<u32>,
    /// The reason for low or high coverage in the window.
    pub coverage_gap: Option<String>,
    /// The summed samples.
    pub profile: Profile,
}

/// Numbers of rows of the growing tables of a profile.
#[derive(Clone, Copy, Debug)]
struct Rows {
    samples: usize,
    nodes: usize,
    lives: usize,
    frames: usize,
}

impl Rows {
    fn of(profile: &Profile) -> Self {
        Self {
            samples: profile.samples.len(),
            nodes: profile.stacks.len(),
            lives: profile.lives.rows().len(),
            frames: profile.frames.len().max(profile.symbols.functions.len()),
        }
    }

    fn map(self, each: impl Fn(usize) -> usize) -> Self {
        let Self { samples, nodes, lives, frames } = self;
        Self { samples: each(samples), nodes: each(nodes), lives: each(lives), frames: each(frames) }
    }

    fn max(self, other: Self) -> Self {
        Self {
            samples: self.samples.max(other.samples),
            nodes: self.nodes.max(other.nodes),
            lives: self.lives.max(other.lives),
            frames: self.frames.max(other.frames),
        }
    }

    /// Whether any number exceeds its limit.
    fn exceed(self, most: Self) -> bool {
        self.samples >= most.samples
            || self.nodes >= most.nodes
            || self.lives >= most.lives
            || self.frames >= most.frames
    }
}

/// Folds all but the last quarter of the samples. If that is not enough, sums are kept for fewer ticks.
fn fold_past(profile: &mut Profile, mut running: HashSet<ProcessId>, pulse: &mut Pulse, limits: Rows) {
    let kept = profile.samples.len() / 4;
    loop {
        let past = Past { kept, times: &pulse.times(), running: &running, nodes: limits.nodes / 4 };
        let new = profile.fold(&past).processes;
        running = running.iter().filter_map(|row| new.get(row).copied()).collect();
        if profile.samples.len() <= limits.samples / 2 || !pulse.thin() {
            return;
        }
    }
}

/// A live recording that can be queried.
pub struct LiveSession {
    recording: WindowedRecording,
    named: Instant,
    ticked: Instant,
    pulse: Pulse,
    /// The counters of coverage at the ticks.
    coverage: BTreeMap<u64, CoverageCounters>,
    /// Numbers of rows at which the past is folded next.
    most: Rows,
    /// Numbers of rows that fit in memory.
    limits: Rows,
    command: Vec<String>,
    /// Longest wait for requested names at a tick.
    name_wait: Duration,
}

impl LiveSession {
    /// Starts, and returns messages on the setup. Windows cover the first event. The command's output is discarded.
    ///
    /// # Errors
    /// Nothing can be recorded, or the command can't be started.
    pub fn start(mut request: RecordRequest) -> Result<(Self, Vec<String>), RecordError> {
        request.sampling.prints = Prints::Nowhere;
        // The display, and names of everything ever seen, get half of the memory that other commands use for samples and files. A large file read by
        // a worker, such as a compiler, is the largest temporary use: there is one worker.
        let names = request.symbols();
        let max_memory = names.max_memory.map(|most| most / 2);
        // A download would hold up all other names.
        let names = Options { max_memory, threads: 1, debuginfod: false, ..names };
        let (recording, notes) = WindowedRecording::start(&request, names, LAST_NAMES)?;
        let share = memory::for_samples(request.max_memory) / 2;
        let limits = BYTES.map(|bytes| usize::try_from(share).unwrap_or(usize::MAX) / bytes);
        let mut live = Self {
            recording,
            named: Instant::now(),
            ticked: Instant::now(),
            pulse: Pulse::default(),
            coverage: BTreeMap::new(),
            most: limits,
            limits,
            command: request.command,
            name_wait: Duration::ZERO,
        };
        live.tick();
        Ok((live, notes))
    }

    /// Sleeps until there is work, at most for `timeout`, and does it.
    ///
    /// # Errors
    /// The recording can't go on.
    pub fn step(&mut self, timeout: Duration, notices: &mut dyn Notices) -> Result<Step, RecordError> {
        let step = self.recording.session.step(timeout)?;
        let is_end = matches!(step, Step::Ended(_));
        if let Some(notice) = self.recording.session.recorder.target_mut().notice().filter(|_| !is_end) {
            notices.of_target(self.recording.session.target(), notice);
        }
        if self.named.elapsed() >= NAMES {
            self.named = Instant::now();
            let WindowedRecording { session, symbols, .. } = &mut self.recording;
            session.recorder.samples_mut().meanwhile(|profile| symbols.round(profile));
        }
        if self.ticked.elapsed() >= TICK {
            self.tick();
        }
        self.recording.session.look_at_memory();
        Ok(step)
    }

    /// Notes the current rates, and stores the names that were found.
    fn tick(&mut self) {
        self.ticked = Instant::now();
        self.store_names(self.name_wait);
        self.fold();
        let target_cpu = self.recording.session.recorder.target_mut().cpu_time();
        let time_ns = monotonic_ns();
        self.coverage.insert(time_ns, self.recording.session.recorder.coverage_counters());
        self.pulse.push(Tick {
            time_ns,
            samples: self.recording.session.recorder.samples().statistics().samples,
            lost: self.recording.session.recorder.lost(),
            target_cpu_ns: target_cpu.map(CpuTime::total_ns),
            own_cpu_ns: own_cpu_time().total_ns(),
        });
        if self.coverage.len() > MOST_READINGS {
            let times = self.pulse.times();
            self.coverage.retain(|time, _| times.binary_search(time).is_ok());
        }
    }

    /// The reason for low or high coverage between two ticks.
    fn coverage_gap(&self, rates: &Rates) -> Option<String> {
        let (from, to) = (self.coverage.get(&rates.from_ns)?, self.coverage.get(&rates.to_ns)?);
        self.recording.session.recorder.coverage().gap(&to.since(*from))
    }

    /// Stores the names that are found, and waits at most this long for those of new samples.
    fn store_names(&mut self, wait: Duration) {
        let WindowedRecording { session, symbols, .. } = &mut self.recording;
        session.recorder.samples_mut().meanwhile(|profile| {
            if !wait.is_zero() {
                symbols.round(profile);
                symbols.settle(wait);
            }
            if symbols.take(profile) {
                make_readable(profile);
            }
        });
    }

    /// Bounds memory: aggregates all but the last quarter of the samples between ticks, and removes unused rows. Windows begin and end at
    /// ticks, so their sums stay exact.
    fn fold(&mut self) {
        // The last fold left at most half as many rows.
        let most =
            if self.recording.session.is_scarce() { self.most.map(|rows| rows / 3 * 2) } else { self.most };
        if !Rows::of(self.recording.session.recorder.samples().profile()).exceed(most) {
            return;
        }
        let TakenWindow { mut profile, running, .. } = self.recording.take();
        let (pulse, limits) = (&mut self.pulse, self.limits);
        let past = self.recording.session.recorder.samples_mut().meanwhile(|_| {
            fold_past(&mut profile, running, pulse, limits);
            let past = profile.compacted();
            drop(profile);
            // The folded part existed twice.
            trim_memory();
            past
        });
        // With many distinct rows, the next folding happens at twice as many.
        self.most = Rows::of(&past).map(|rows| rows * 2).max(self.limits);
        self.recording.session.recorder.samples_mut().put_back(past);
    }

    /// Waits at each tick for the names of new samples: a printed table can't be corrected later.
    pub fn wait_for_names(&mut self) {
        self.name_wait = PRINTED_NAMES;
    }

    /// Discards the samples so far.
    pub fn reset(&mut self) {
        self.tick();
        self.pulse.reset();
    }

    /// The samples in a window that ends now, or with the last tick before `until_ns`. `length_ns`: length of the window; `None`: everything since
    /// the start, or the last [`reset`](Self::reset).
    pub fn sum_of_window(&mut self, length_ns: Option<u64>, until_ns: Option<u64>) -> WindowSum {
        self.tick();
        let rates = self.pulse.rates_until(until_ns.unwrap_or(u64::MAX), length_ns);
        let summed = |profile: &mut Profile| profile.summed(rates.from_ns, rates.to_ns);
        let mut profile = self.recording.session.recorder.samples_mut().meanwhile(summed);
        own_probes::leave_out(&mut profile);
        let setup = self.recording.session.recorder.setup();
        WindowSum {
            rates,
            coverage_gap: self.coverage_gap(&rates),
            clock_hz: is_clock(setup.events[0].counter.name()).then_some(setup.frequency_hz),
            profile,
        }
    }

    /// Everything recorded so far.
    pub fn so_far(&mut self) -> Profile {
        let mut profile = self.recording.session.recorder.so_far();
        profile.meta.recorder = RecordRequest::RECORDER.into();
        profile.meta.command = self.command.clone();
        profile
    }

    /// A warning, if more memory was used than the limit.
    pub fn exceeded(&self) -> Option<String> {
        self.recording.session.exceeded()
    }

    /// Stops the recording. Returns a command that still runs, and the descendants of one that has ended.
    pub fn stop(self) -> (Option<Running>, Descendants) {
        let (recorded, _) = self.recording.session.stop();
        (recorded.running, recorded.left)
    }
}
