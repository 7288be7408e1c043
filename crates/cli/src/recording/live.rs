//! A recording that is looked at while it goes on: what was sampled in a window of its past, summed up, with names as they are found,
//! and how it goes.
//!
//! Invariant: memory is bounded however long it goes on: the past is taken out, folded and put back without anything that no sample has, and
//! sums of windows that begin and end at looks stay right. Not here: drawing.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use plumb_analyze::{Pulse, Rates, Tick, is_clock};
use plumb_capture_perf::{TakenProfile, trim_memory};
use plumb_process::usage::CpuTime;
use plumb_process::usage::own_cpu_time;
use plumb_profile::{Past, ProcessId, Profile};
use plumb_symbolize::{Options, make_readable};
use plumb_target::{Descendants, Prints, Running};

use super::memory;
use super::notice;
use super::own_probes;
use super::request::RecordRequest;
use super::session::{Session, Step};
use crate::render::label;
use crate::render::precision::Precision;

/// Shortest time between two looks for frames without names. Names of the first are wanted at once.
const NAMES: Duration = Duration::from_millis(300);

/// Bytes that a sample, a node of a stack, a life, and a frame with its function and name take about, with what finds equal ones.
const BYTES: Rows = Rows { samples: 50, nodes: 50, lives: 100, frames: 250 };

/// Longest wait for names before the profile that they belong to is taken out.
const LAST_NAMES: Duration = Duration::from_millis(300);

/// Longest wait for names of a table that is printed: reading the kernel's takes as long on a busy machine.
const PRINTED_NAMES: Duration = Duration::from_secs(2);

/// Longest time between two looks at how it goes, also where nobody asks.
const TICK: Duration = Duration::from_secs(2);

/// What was sampled in a window of a recording.
#[derive(Default)]
pub struct WindowSum {
    /// How it went.
    pub rates: Rates,
    /// Samples a second, if they are taken by processor time.
    pub clock_hz: Option<u32>,
    /// What was sampled, summed up.
    pub profile: Profile,
}

impl WindowSum {
    /// What there is to know about it, most important first.
    pub fn facts(&self, interval: Duration) -> Vec<String> {
        let WindowSum { rates, clock_hz, .. } = self;
        let mut facts = vec![label::samples(rates.samples), format!("{} lost", rates.lost)];
        if let Some(coverage) = clock_hz.and_then(|hz| rates.coverage(hz)) {
            let precision = Precision::of_samples(rates.samples).min(Precision::TENTHS);
            facts.push(format!("coverage {}", precision.percent(coverage)));
        }
        facts.push(format!("plumb {:.1}% of a CPU", rates.own_percent()));
        facts.push(format!("window {:.1} s", rates.length_ns() as f64 / 1e9));
        facts.push(format!("every {} s", interval.as_secs_f64()));
        facts
    }
}

/// Rows of a profile that grow, by kind.
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

    /// Whether there are as many of any kind.
    fn exceed(self, most: Self) -> bool {
        self.samples >= most.samples
            || self.nodes >= most.nodes
            || self.lives >= most.lives
            || self.frames >= most.frames
    }
}

/// Folds all but the last quarter of the samples. Looks between which sums are kept become fewer where that is not enough.
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

/// A recording that goes on, and can be asked what was sampled.
pub struct LiveSession {
    session: Session,
    symbols: plumb_symbolize::Session,
    named: Instant,
    ticked: Instant,
    pulse: Pulse,
    /// With so many rows of a kind the past is folded next.
    most: Rows,
    /// Rows of each kind that there is memory for.
    limits: Rows,
    command: Vec<String>,
    /// Nothing is drawn on the terminal where messages go.
    may_say: bool,
    /// Longest wait at a look for names that were asked for.
    name_wait: Duration,
}

impl LiveSession {
    /// Begins, and gives back what is to be said about it. `may_say`: nothing is drawn on the terminal where messages go. What a command
    /// prints goes nowhere.
    ///
    /// # Errors
    /// As [`record`](super::record); windows are of one event.
    pub fn start(mut request: RecordRequest, may_say: bool) -> Result<(Self, Vec<String>)> {
        ensure!(request.sampling.also.is_empty(), "plumb top shows one event: give one -e");
        request.sampling.prints = Prints::Nowhere;
        let (session, mut notes) = Session::start(&request, None)?;
        notes.extend(session.recorder.setup().limits.iter().cloned());
        // Pictures, and names of all that was ever seen, take half of what others have for samples and files. What a worker
        // reads of a large file, such as a compiler, is the most that comes and goes: there is one.
        let names = request.symbols();
        let names = Options { max_memory: names.max_memory.map(|most| most / 2), threads: 1, ..names };
        let share = memory::for_samples(request.max_memory) / 2;
        let limits = BYTES.map(|bytes| usize::try_from(share).unwrap_or(usize::MAX) / bytes);
        let mut live = Self {
            session,
            symbols: plumb_symbolize::Session::begin_live(names),
            named: Instant::now(),
            ticked: Instant::now(),
            pulse: Pulse::default(),
            most: limits,
            limits,
            command: request.command,
            may_say,
            name_wait: Duration::ZERO,
        };
        live.tick();
        Ok((live, notes))
    }

    /// Sleeps until there is something to do, `timeout` at most, and does it.
    ///
    /// # Errors
    /// The system refuses to go on.
    pub fn step(&mut self, timeout: Duration) -> Result<Step> {
        let step = self.session.step(timeout)?;
        let is_end = matches!(step, Step::Ended(_));
        if let Some(notice) = self.session.recorder.notice().filter(|_| !is_end && self.may_say) {
            notice::say_of(self.session.target(), notice);
        }
        if self.named.elapsed() >= NAMES {
            self.named = Instant::now();
            let symbols = &mut self.symbols;
            self.session.recorder.meanwhile(|profile| symbols.round(profile));
        }
        if self.ticked.elapsed() >= TICK {
            self.tick();
        }
        self.session.look_at_memory();
        Ok(step)
    }

    /// Looks at how it goes, and writes down the names that were found.
    fn tick(&mut self) {
        self.ticked = Instant::now();
        let (symbols, name_wait) = (&mut self.symbols, self.name_wait);
        self.session.recorder.meanwhile(|profile| {
            if !name_wait.is_zero() {
                symbols.round(profile);
                symbols.settle(name_wait);
            }
            if symbols.take(profile) {
                make_readable(profile);
            }
        });
        self.fold();
        let target_cpu = self.session.recorder.target_cpu();
        self.pulse.push(Tick {
            time_ns: self.session.recorder.now_ns(),
            samples: self.session.recorder.statistics().samples,
            lost: self.session.recorder.lost(),
            target_cpu_ns: target_cpu.map(CpuTime::total_ns),
            own_cpu_ns: own_cpu_time().total_ns(),
        });
    }

    /// Takes out what was recorded since the last time, with the names that were found for it, and goes on with an empty profile: nothing
    /// remembers ids of the old one, which may be kept, sent away or dropped. Figures of how it goes are not touched.
    pub fn take(&mut self) -> TakenProfile {
        let symbols = &mut self.symbols;
        self.session.recorder.meanwhile(|profile| {
            symbols.round(profile);
            symbols.settle(LAST_NAMES);
            if symbols.take(profile) {
                make_readable(profile);
            }
        });
        let taken = self.session.recorder.take();
        self.symbols.renew();
        taken
    }

    /// Keeps memory in bounds: all but the last quarter of samples is summed up between looks, and what no sample has goes. Windows begin
    /// and end at looks, so that their sums stay right.
    fn fold(&mut self) {
        // Of what was folded last there is half of that at the most.
        let most = if self.session.is_scarce() { self.most.map(|rows| rows / 3 * 2) } else { self.most };
        if !Rows::of(self.session.recorder.profile()).exceed(most) {
            return;
        }
        let TakenProfile { mut profile, running, .. } = self.take();
        let (pulse, limits) = (&mut self.pulse, self.limits);
        let past = self.session.recorder.meanwhile(|_| {
            fold_past(&mut profile, running, pulse, limits);
            let past = profile.compacted();
            drop(profile);
            // What was folded was there twice.
            trim_memory();
            past
        });
        // Should there be so many different ones, it is done again when there are twice as many.
        self.most = Rows::of(&past).map(|rows| rows * 2).max(self.limits);
        self.session.recorder.put_back(past);
    }

    /// Waits at each look for the names of what was sampled: a table that is printed once can't be corrected later.
    pub fn wait_for_names(&mut self) {
        self.name_wait = PRINTED_NAMES;
    }

    /// Everything begins now.
    pub fn reset(&mut self) {
        self.tick();
        self.pulse.reset();
    }

    /// What was sampled in a window that ends now, or with the last look before `until_ns`. `length_ns`: of the window; `None`: all since
    /// the beginning, or the last [`reset`](Self::reset).
    pub fn sum_of_window(&mut self, length_ns: Option<u64>, until_ns: Option<u64>) -> WindowSum {
        self.tick();
        let rates = self.pulse.rates_until(until_ns.unwrap_or(u64::MAX), length_ns);
        let summed = |profile: &mut Profile| profile.summed(rates.from_ns, rates.to_ns);
        let mut profile = self.session.recorder.meanwhile(summed);
        own_probes::leave_out(&mut profile);
        let setup = self.session.recorder.setup();
        WindowSum {
            rates,
            clock_hz: is_clock(setup.events[0].counter.name()).then_some(setup.frequency_hz),
            profile,
        }
    }

    /// All that was recorded so far.
    pub fn so_far(&mut self) -> Profile {
        let mut profile = self.session.recorder.so_far();
        profile.meta.recorder = RecordRequest::RECORDER.into();
        profile.meta.command = self.command.clone();
        profile
    }

    /// A sentence, if more memory was taken than the bound.
    pub fn exceeded(&self) -> Option<String> {
        self.session.exceeded()
    }

    /// Stops it. A command that still runs is given back, and who outlives one that doesn't.
    pub fn stop(self) -> (Option<Running>, Descendants) {
        let (recorded, _) = self.session.stop();
        (recorded.running, recorded.left)
    }
}
