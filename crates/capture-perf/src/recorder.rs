//! A recording in progress: turns records into a profile.
//!
//! Each of its parts owns its state: the target and its end (`target`), the events (`sampled`), the records and the profile of them (`intake`), and
//! what keeps events in bounds (`guard`, `copies`, `other_programs`). Here is the order in which they act.

mod assign;
mod began;
mod copies;
mod coverage;
mod finish;
mod guard;
mod intake;
mod other_programs;
mod pace;
mod sampled;
mod start;
mod target;

use std::time::{Duration, Instant};

use plumb_ingest::TakenProfile;
use plumb_process::Host;
use plumb_process::procfs::MachineTimes;
use plumb_process::usage::{CpuTime, Priority, monotonic_ns, nanoseconds};
use plumb_profile::Scope;
use plumb_target::End;
use plumb_target::signals;

use self::began::Began;
use self::copies::StackCopies;
pub use self::coverage::{CoverageCounters, CoverageRule};
pub use self::finish::Recorded;
use self::guard::Guard;
pub use self::intake::SampleIntake;
use self::other_programs::OtherProgramsWatch;
use self::pace::slow_down;
use self::sampled::SampledEvents;
use self::target::Ended;
pub use self::target::RecordedTarget;
use crate::attr::{Counter, period_ns};
use crate::error::Error;
use crate::setup::Setup;

/// A recording in progress.
pub struct Recorder {
    host: Host,
    setup: Setup,
    began: Began,
    target: RecordedTarget,
    events: SampledEvents,
    samples: SampleIntake,
    /// Set for a recording with hardware counters.
    guard: Option<Guard>,
    copies: StackCopies,
    other_programs: OtherProgramsWatch,
}

impl Recorder {
    /// The setup, with differences from the options.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The target: its processes, CPU time and end.
    pub fn target(&self) -> &RecordedTarget {
        &self.target
    }

    /// [`target`](Self::target), to refresh what is known of it.
    pub fn target_mut(&mut self) -> &mut RecordedTarget {
        &mut self.target
    }

    /// The samples so far.
    pub fn samples(&self) -> &SampleIntake {
        &self.samples
    }

    /// [`samples`](Self::samples), to work on them.
    pub fn samples_mut(&mut self) -> &mut SampleIntake {
        &mut self.samples
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Number of samples lost so far, as counted by events, records, rings and programs.
    pub fn lost(&self) -> u64 {
        self.samples.lost(&self.events)
    }

    /// Sleeps until there are records to read, the target ends or `timeout` has passed, and reads the records.
    /// Returns `Some` once the recording has to be finished.
    pub fn step(&mut self, timeout: Duration) -> Result<Option<End>, Error> {
        let mut priority = Priority::raise();
        let (is_signalled, gone) = self.wait(timeout)?;
        if is_signalled || gone.contains(&true) {
            // The kernel spins while it frees a process, until the holder of its entry in /proc releases it (shrink_dcache_parent in
            // fs/dcache.c), and the holder would not run while a thread with a raised priority does.
            priority = None;
        }
        let end = self.target.heed_signals(&mut self.samples.ingest).or_else(|| self.heed_ends(&gone));
        if let Some(end) = end {
            // No sample after the end: later activity does not belong to the target.
            self.stop();
            return Ok(Some(end));
        }
        let _priority = priority.or_else(Priority::raise);
        self.guard();
        self.heed_other_programs();
        self.slow_down();
        self.samples.read(&self.events, monotonic_ns());
        self.meet_new();
        self.target.look_at_account();
        self.grow();
        self.samples.look();
        Ok(None)
    }

    /// Takes out everything recorded since the last call, and continues with a new profile with the same events: nothing here keeps
    /// an ID of the old one. Counts of lost samples and CPU time continue, and its `meta` holds them for the whole recording so far.
    ///
    /// If off-CPU times are measured, ongoing ones are included up to now.
    pub fn take(&mut self) -> TakenProfile {
        let mut taken = self.samples.take();
        taken.profile.meta = self.facts_so_far();
        taken
    }

    /// Changes the clock's frequency to `hz` per second of CPU time. A sample weighs the period at which it was taken; each change
    /// loses less than one period per CPU.
    ///
    /// # Errors
    /// The kernel opens no new events: the old ones continue.
    pub fn set_frequency(&mut self, hz: u32) -> Result<(), Error> {
        let hz = hz.max(1);
        if self.events.iter().any(|one| one.events.sampling().period().is_some()) {
            // Records without a period belong to the old frequency up to here.
            self.samples.read(&self.events, monotonic_ns());
        }
        self.events.set_frequency(hz, &mut self.samples.ingest.weights())?;
        self.setup.frequency_hz = hz;
        Ok(())
    }

    /// Reads the counters of coverage: all count from the start of the recording but the time and the machine's times.
    pub fn coverage_counters(&mut self) -> CoverageCounters {
        let target_cpu = self.target.cpu_time();
        self.counters(target_cpu)
    }

    /// Whether a hardware counter was sampled less often than requested.
    fn took_fewer(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::took_fewer)
    }

    /// The properties of this recording that coverage depends on.
    pub fn coverage(&self) -> CoverageRule<'_> {
        CoverageRule {
            clock: self.events.clock().map(|clock| clock.events.sampling()).filter(|_| !self.took_fewer()),
            cpus: self.host.cpus.len(),
            scope: self.setup.scope,
            other_programs: &self.other_programs.seen.names,
            account_has_gaps: self.target.account_has_gaps(),
        }
    }

    fn counters(&self, target_cpu: Option<CpuTime>) -> CoverageCounters {
        let (statistics, samples) = (self.samples.statistics(), &self.samples.profile().samples);
        let samples = match (self.events.iter().len(), self.events.clock()) {
            (1, _) => Some(statistics.samples),
            // With several events, the number is unknown once a part was removed from memory.
            (_, Some(clock)) if samples.len() as u64 == statistics.samples => {
                Some(samples.iter().filter(|sample| sample.event == clock.id).count() as u64)
            }
            _ => None,
        };
        CoverageCounters {
            time_ns: monotonic_ns(),
            samples,
            lost: self.lost(),
            throttled: statistics.throttled,
            target_cpu,
            machine: MachineTimes::now(),
            others_ns: self.other_programs.seen.run_ns,
        }
    }

    /// Sleeps until there is work. Returns whether a signal came, and which of the watched processes have ended.
    fn wait(&mut self, timeout: Duration) -> Result<(bool, Vec<bool>), Error> {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let files: Vec<_> = self.target.descriptors().chain(self.samples.descriptors()).collect();
        let asked = Instant::now();
        let ready = signals::poll(&files, timeout_ms).map_err(Error::system("waiting for records"))?;
        let late = asked.elapsed().saturating_sub(timeout);
        self.guard.iter_mut().for_each(|guard| guard.note_delay(late));
        let mut ready = ready.into_iter();
        let is_signalled = ready.next().unwrap_or(false);
        Ok((is_signalled, ready.take(self.target.watched()).collect()))
    }

    /// Handles ended processes; returns an end if none is left that matters.
    fn heed_ends(&mut self, gone: &[bool]) -> Option<End> {
        match self.target.heed_ends(&mut self.samples.ingest, gone) {
            Ended::GoesOn => None,
            Ended::All(end) => Some(end),
            Ended::Some => {
                self.samples.read(&self.events, monotonic_ns());
                self.meet_arrived();
                (!self.target.is_left(&self.samples.ingest)).then_some(End::Gone)
            }
        }
    }

    /// Handles processes that have started the awaited program: the first one starts the recording.
    fn meet_arrived(&mut self) {
        for pid in self.samples.ingest.processes().take_arrived() {
            if self.target.add(pid) {
                self.began.again(&[pid]);
            }
            self.samples.ingest.processes().watch_queues_of(pid);
            self.samples.unwinder.iter_mut().for_each(|unwinder| unwinder.follow(pid));
        }
    }

    /// Handles processes that have started the awaited program, and those that have joined the cgroup, if measurements are per process. Events are
    /// attached to the cgroup anyway.
    fn meet_new(&mut self) {
        self.meet_arrived();
        if let Some(unwinder) = &mut self.samples.unwinder
            && unwinder.measure().is_some()
        {
            self.target.joined().into_iter().for_each(|pid| unwinder.follow(pid));
        }
    }

    /// Checks the hardware counters, if there are any.
    fn guard(&mut self) {
        if let Some(guard) = &mut self.guard {
            let weights = &mut self.samples.ingest.weights();
            self.setup.limits.extend(guard.check(&mut self.events, weights, self.began.elapsed()));
        }
    }

    /// Falls back to copying where other tools' programs suppress too many samples.
    fn heed_other_programs(&mut self) {
        let now_ns = monotonic_ns();
        let has_program = || self.events.iter().any(|one| one.events.is_decided());
        if !self.other_programs.is_due(now_ns) || !has_program() {
            return;
        }
        self.other_programs.look(self.samples.unwinder.as_mut(), false);
        let mut watch = std::mem::take(&mut self.other_programs);
        let is_too_much = watch.suppress_samples(now_ns, || self.clock_and_samples());
        self.other_programs = watch;
        if is_too_much && self.events.go_on_without().is_ok() {
            let names = self.other_programs.seen.names.join(", ");
            let seconds = self.elapsed().as_secs_f64();
            self.setup.limits.push(format!(
                "stacks are copied from {seconds:.1} s on, as with --capture perf: the kernel drops samples that a BPF program is to take \
                 while one of another tool runs ({names})"
            ));
        }
    }

    /// The clock's count for the target and the time that its samples represent, if only the target is counted.
    fn clock_and_samples(&self) -> Option<(u64, u64)> {
        let mut decided = self.events.iter().filter(|one| one.events.is_decided());
        let clock = decided
            .next()
            .filter(|one| one.events.sampling().counter == Counter::CpuClock && one.is_clock())?;
        if decided.next().is_some() || !self.counts_target_only() || self.setup.scope == Scope::System {
            return None;
        }
        let asked = self.samples.kernel()?.handed_over().asked();
        Some((clock.events.counted()?, asked.saturating_mul(period_ns(self.setup.frequency_hz))))
    }

    /// Whether the events count only the target.
    fn counts_target_only(&self) -> bool {
        self.target.is_counted_alone(self.setup.scope)
    }

    /// Lengthens the periods of frequent events.
    fn slow_down(&mut self) {
        let elapsed_ns = nanoseconds(self.elapsed());
        for index in slow_down(&mut self.events, &mut self.samples, self.setup.frequency_hz, elapsed_ns) {
            self.setup.note_frequent(index, self.events.at(index).events.sampling());
        }
    }

    /// Enlarges the copies of stacks, if too many stacks are deeper.
    fn grow(&mut self) {
        let Some(bytes) = self.copies.wanted(self.samples.statistics(), self.samples.wants()) else { return };
        if self.events.grow(bytes).is_err() {
            // For example, out of descriptors: the events stay, and aren't enlarged again.
            self.copies.stay();
            return;
        }
        // Records in the rings still have the smaller copies.
        self.samples.read(&self.events, monotonic_ns());
        self.copies.grown(bytes, self.samples.statistics());
    }

    /// Stops sampling.
    fn stop(&mut self) {
        self.events.stop();
        self.samples.stop_measuring();
        self.setup.limits.extend(self.guard.as_mut().and_then(Guard::restore));
    }
}
