//! A recording that is looked at while it goes on: what was sampled in a window of its past, summed up, with names as they are found,
//! and how it goes.
//!
//! Invariant: memory is bounded: the past is folded, and sums of windows that begin and end at looks stay right. Not here: drawing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use plumb_analyze::{Pulse, Rates, Tick, is_clock};
use plumb_capture_perf::trim_memory;
use plumb_process::usage::CpuTime;
use plumb_process::usage::own_cpu_time;
use plumb_profile::Profile;
use plumb_symbolize::{Options, make_readable};
use plumb_target::{Descendants, Prints, Running};

use super::memory;
use super::notice;
use super::request::RecordRequest;
use super::session::{Session, Step};

/// Shortest time between two looks for frames without names. Names of the first are wanted at once.
const NAMES: Duration = Duration::from_millis(300);

/// So many bytes a sample, a node of a stack and a life take about; of more than there is memory for the past is folded.
const BYTES: [u64; 3] = [50, 50, 100];

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
        let mut facts = vec![format!("{} samples", rates.samples), format!("{} lost", rates.lost)];
        if let Some(coverage) = clock_hz.and_then(|hz| rates.coverage(hz)) {
            facts.push(format!("coverage {coverage:.1}%"));
        }
        facts.push(format!("plumb {:.1}% of a CPU", rates.own_percent()));
        facts.push(format!("window {:.1} s", rates.length_ns() as f64 / 1e9));
        facts.push(format!("every {} s", interval.as_secs_f64()));
        facts
    }
}

/// A recording that goes on, and can be asked what was sampled.
pub struct LiveSession {
    session: Session,
    symbols: plumb_symbolize::Session,
    named: Instant,
    ticked: Instant,
    pulse: Pulse,
    /// With so many samples the past is folded next.
    most: usize,
    /// Most samples, nodes of stacks and lives that are kept.
    limits: [usize; 3],
    command: Vec<String>,
    /// Nothing is drawn on the terminal where messages go.
    may_say: bool,
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
        // Pictures, and names of all that was ever seen, take half of what others have for samples and files.
        let names = request.symbols();
        let names = Options { max_memory: names.max_memory.map(|most| most / 2), ..names };
        let share = memory::for_samples(request.max_memory) / 2;
        let limits = BYTES.map(|bytes| usize::try_from(share / bytes).unwrap_or(usize::MAX));
        let mut live = Self {
            session,
            symbols: plumb_symbolize::Session::begin_live(names),
            named: Instant::now(),
            ticked: Instant::now(),
            pulse: Pulse::default(),
            most: limits[0],
            limits,
            command: request.command,
            may_say,
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
        let symbols = &mut self.symbols;
        self.session.recorder.meanwhile(|profile| {
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

    /// Keeps memory in bounds: all but the last quarter of samples is summed up between looks. Windows begin and end at looks, so
    /// that their sums stay right.
    fn fold(&mut self) {
        let samples = |live: &Self| live.session.recorder.profile().samples.len();
        let profile = self.session.recorder.profile();
        let [_, nodes, lives] =
            self.limits.map(|limit| if self.session.is_scarce() { limit / 2 } else { limit });
        let is_large = profile.stacks.len() >= nodes || profile.lives.rows().len() >= lives;
        if !is_large && samples(self) < self.most {
            return;
        }
        let kept = samples(self) / 4;
        self.session.recorder.fold(kept, &self.pulse.times(), self.limits[1] / 4);
        while samples(self) > self.limits[0] / 2 && self.pulse.thin() {
            self.session.recorder.fold(kept, &self.pulse.times(), self.limits[1] / 4);
        }
        // What was folded was there twice.
        self.session.recorder.meanwhile(|_| trim_memory());
        // Should there be so many different ones, it is done again when there are twice as many.
        self.most = self.limits[0].max(2 * samples(self));
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
        let profile = self.session.recorder.meanwhile(|profile| profile.summed(rates.from_ns, rates.to_ns));
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
