//! The recording that is looked at while it goes on: its samples, names as they are found, and how it goes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use plumb_analyze::{Pulse, Rates, Tick, is_clock};
use plumb_capture_perf::{Recorder, trim_memory};
use plumb_process::usage::CpuTime;
use plumb_process::usage::own_cpu_time;
use plumb_profile::Profile;
use plumb_symbolize::{Options, Session, make_readable};
use plumb_target::{Descendants, End, Prints, Running, Target};

use crate::cmd::browse::state::Window;
use crate::cmd::record::memory::{self, Memory};
use crate::cmd::record::{Capturing, Scope, notice};

/// Shortest time between two looks for frames without names. Names of the first are wanted at once.
const NAMES: Duration = Duration::from_millis(300);

/// So many bytes a sample, a node of a stack and a life take about; of more than there is memory for the past is folded.
const BYTES: [u64; 3] = [50, 50, 100];

/// Longest time between two looks at how it goes, also where nobody asks.
const TICK: Duration = Duration::from_secs(2);

/// A stretch of a recording.
#[derive(Default)]
pub(super) struct Stretch {
    /// How it went.
    pub rates: Rates,
    /// Samples a second, if they are taken by processor time.
    pub clock_hz: Option<u32>,
    /// What was sampled, summed up.
    pub profile: Profile,
}

impl Stretch {
    /// What there is to know about it, most important first.
    pub fn facts(&self, interval: Duration) -> Vec<String> {
        let Stretch { rates, clock_hz, .. } = self;
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

/// A recording that goes on.
pub(super) struct Live {
    recorder: Recorder,
    target: Target,
    names: Session,
    named: Instant,
    ticked: Instant,
    pulse: Pulse,
    /// With so many samples the past is folded next.
    most: usize,
    /// Most samples, nodes of stacks and lives that are kept.
    limits: [usize; 3],
    memory: Memory,
    words: Vec<String>,
    duration: Option<Duration>,
    /// Nothing is drawn on the terminal where messages go.
    may_say: bool,
}

impl Live {
    /// Begins, and says what is to be said about it. Who names nobody gets the machine, or what of it may be seen.
    /// `may_say`: nothing is drawn on the terminal where messages go.
    pub fn start(scope: &Scope, may_say: bool) -> Result<(Self, Vec<String>)> {
        let target = if scope.names_target() { scope.target()? } else { Target::Machine };
        let mut notes = Vec::new();
        let started = record(scope, &target, &mut notes);
        let (recorder, target) = match started {
            Ok(recorder) => (recorder, target),
            Err(_) if !scope.names_target() => {
                let own = Target::Processes(own_processes());
                let recorder = record(scope, &own, &mut notes)?;
                notes.push(
                    "your own processes only: the whole machine takes root, or kernel.perf_event_paranoid=0"
                        .into(),
                );
                (recorder, own)
            }
            Err(error) => return Err(error),
        };
        notes.extend(recorder.setup().limits.iter().cloned());
        // Pictures, and names of all that was ever seen, take half of what others have for samples and files.
        let names = scope.names();
        let names =
            Session::begin_live(Options { max_memory: names.max_memory.map(|most| most / 2), ..names });
        let share = memory::for_samples(scope.max_memory()) / 2;
        let limits = BYTES.map(|bytes| usize::try_from(share / bytes).unwrap_or(usize::MAX));
        let mut live = Self {
            recorder,
            target,
            names,
            named: Instant::now(),
            ticked: Instant::now(),
            pulse: Pulse::default(),
            most: limits[0],
            limits,
            memory: Memory::new(scope.max_memory()),
            words: scope.words(),
            duration: scope.target.duration,
            may_say,
        };
        live.tick();
        Ok((live, notes))
    }

    /// Sleeps until there is something to do, `timeout` at most, and does it. `Some` once there is no more to come.
    pub fn step(&mut self, timeout: Duration) -> Result<Option<End>> {
        let end = self.recorder.step(timeout)?;
        if let Some(notice) = self.recorder.notice().filter(|_| end.is_none() && self.may_say) {
            notice::say_of(&self.target, notice);
        }
        if self.named.elapsed() >= NAMES {
            self.named = Instant::now();
            let names = &mut self.names;
            self.recorder.meanwhile(|profile| names.round(profile));
        }
        if self.ticked.elapsed() >= TICK {
            self.tick();
        }
        if self.memory.is_due() {
            let memory = &mut self.memory;
            self.recorder.meanwhile(|_| memory.look());
        }
        Ok(end)
    }

    /// Whether `--duration` is over.
    pub fn time_is_up(&self) -> bool {
        self.duration.is_some_and(|duration| self.recorder.elapsed() >= duration)
    }

    /// Looks at how it goes, and writes down the names that were found.
    fn tick(&mut self) {
        self.ticked = Instant::now();
        let names = &mut self.names;
        self.recorder.meanwhile(|profile| {
            if names.take(profile) {
                make_readable(profile);
            }
        });
        self.fold();
        let target_cpu = self.recorder.target_cpu();
        self.pulse.push(Tick {
            time_ns: self.recorder.now_ns(),
            samples: self.recorder.statistics().samples,
            lost: self.recorder.lost(),
            target_cpu_ns: target_cpu.map(CpuTime::total_ns),
            own_cpu_ns: own_cpu_time().total_ns(),
        });
    }

    /// Keeps memory in bounds: all but the last quarter of samples is summed up between looks. Windows begin and end at looks, so
    /// that their sums stay right.
    fn fold(&mut self) {
        let samples = |live: &Self| live.recorder.profile().samples.len();
        let profile = self.recorder.profile();
        let [_, nodes, lives] =
            self.limits.map(|limit| if self.memory.is_scarce() { limit / 2 } else { limit });
        let is_large = profile.stacks.len() >= nodes || profile.lives.rows().len() >= lives;
        if !is_large && samples(self) < self.most {
            return;
        }
        let kept = samples(self) / 4;
        self.recorder.fold(kept, &self.pulse.times(), self.limits[1] / 4);
        while samples(self) > self.limits[0] / 2 && self.pulse.thin() {
            self.recorder.fold(kept, &self.pulse.times(), self.limits[1] / 4);
        }
        // What was folded was there twice.
        self.recorder.meanwhile(|_| trim_memory());
        // Should there be so many different ones, it is done again when there are twice as many.
        self.most = self.limits[0].max(2 * samples(self));
    }

    /// Everything begins now.
    pub fn reset(&mut self) {
        self.tick();
        self.pulse.reset();
    }

    /// A window that ends now, or with the last look before `until_ns`.
    pub fn stretch(&mut self, window: Window, until_ns: Option<u64>) -> Stretch {
        self.tick();
        let rates = self.pulse.rates_until(until_ns.unwrap_or(u64::MAX), window.nanoseconds());
        let profile = self.recorder.meanwhile(|profile| profile.summed(rates.from_ns, rates.to_ns));
        let setup = self.recorder.setup();
        Stretch {
            rates,
            clock_hz: is_clock(setup.events[0].counter.name()).then_some(setup.frequency_hz),
            profile,
        }
    }

    /// Who is looked at.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// All that was recorded so far.
    pub fn so_far(&mut self) -> Profile {
        let mut profile = self.recorder.so_far();
        profile.meta.recorder = concat!("plumb ", env!("CARGO_PKG_VERSION")).into();
        profile.meta.command = self.words.clone();
        profile
    }

    /// A sentence, if more memory was taken than the bound.
    pub fn exceeded(&self) -> Option<String> {
        self.memory.exceeded()
    }

    /// Ends it. A command that still runs is given back, and who outlives one that doesn't.
    pub fn finish(self) -> (Option<Running>, Descendants) {
        let recorded = self.recorder.finish();
        (recorded.running, recorded.left)
    }
}

fn record(scope: &Scope, target: &Target, notes: &mut Vec<String>) -> Result<Recorder> {
    let Capturing { mut options, assistant, note } = scope.setup(target, false)?;
    ensure!(options.also.is_empty(), "plumb top shows one event: give one -e");
    options.prints = Prints::Nowhere;
    let recorder = Recorder::start_with(target, &options, assistant)?;
    notes.extend(note);
    Ok(recorder)
}

/// The processes of this user but this one.
fn own_processes() -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let user = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid());
    let own = std::process::id();
    let mine = user(own);
    plumb_process::pids().into_iter().filter(|&pid| pid != own && user(pid) == mine).collect()
}
