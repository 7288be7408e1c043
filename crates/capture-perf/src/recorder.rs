//! A recording in progress: turns records into a profile.

mod assign;
mod blind;
mod coverage;
mod ends;
mod finish;
mod guard;
mod live;
mod sampled;
mod start;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plumb_capture_api::{Measure, ProbeCounts, SamplingRate};
use plumb_ingest::{Ingest, Statistics};
use plumb_process::Host;
use plumb_process::procfs::MachineTimes;
use plumb_process::throttle::Throttle;
use plumb_process::usage::{CpuTime, Priority, monotonic_ns, nanoseconds};
use plumb_profile::Profile;
use plumb_target::End;
use plumb_target::signals;

use self::assign::number_of;
use self::blind::Blind;
pub use self::coverage::CoverageCounters;
use self::ends::Observed;
pub use self::finish::Recorded;
use self::guard::Guard;
use self::sampled::{Belonging, Sampled};
use crate::account::Account;
use crate::error::Error;
use crate::events::{Attachment, EventContext};
use crate::limit::{Limit, Progress};
use crate::merge::Merge;
use crate::overflow::OverflowBuffer;
use crate::ring::Ring;
use crate::setup::Setup;
use crate::stack_copy::StackCopySizer;
use crate::unwinder::AttachedUnwinder;

/// A recording in progress.
pub struct Recorder {
    host: Host,
    setup: Setup,
    observed: Observed,
    ground: Arc<EventContext>,
    /// At least one; one of them reports mappings and processes.
    sampled: Vec<Sampled>,
    belonging: Belonging,
    rings: Merge<OverflowBuffer<Ring>>,
    /// Set for a recording with hardware counters.
    guard: Option<Guard>,
    copies: Copies,
    ingest: Ingest,
    /// Memory for cached unwind information that is not in use, in bytes.
    unwind_memory: usize,
    unwinder: Option<AttachedUnwinder>,
    account: Account,
    began: Began,
    /// Whether earlier samples were summed up.
    has_folded: bool,
}

/// The size of stack copies, with the state that decides on it.
struct Copies {
    sizer: StackCopySizer,
    /// Number of requested tables at the last two checks.
    wants: [u64; 2],
    /// Reasons for missing samples.
    blind: Blind,
}

/// State at the start of a recording.
struct Began {
    monotonic_ns: u64,
    unix_ns: u64,
    own: CpuTime,
    /// Time of all CPUs that no thread ran.
    machine: MachineTimes,
    /// The throttling cgroups of the target's first process.
    throttle: Option<Throttle>,
}

impl Began {
    /// The state now, for a target with these processes. `own`: the recorder's CPU time when it started to prepare the recording.
    fn now(own: CpuTime, pids: &[u32]) -> Self {
        Began {
            monotonic_ns: monotonic_ns(),
            unix_ns: unix_ns(),
            own,
            machine: MachineTimes::now(),
            throttle: pids.first().and_then(|&pid| Throttle::of(pid)),
        }
    }
}

impl Recorder {
    /// The setup, with differences from the options.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The processes that the recording follows.
    pub fn pids(&self) -> &[u32] {
        &self.observed.pids
    }

    /// Counts of samples so far.
    pub fn statistics(&self) -> &Statistics {
        self.ingest.statistics()
    }

    /// The frames and files so far. More may come, but none changes or disappears.
    pub fn profile(&self) -> &Profile {
        self.ingest.profile()
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.began.monotonic_ns))
    }

    /// Sleeps until there are records to read, the target ends or `timeout` has passed, and reads the records.
    /// Returns `Some` once the recording has to be finished.
    pub fn step(&mut self, timeout: Duration) -> Result<Option<End>, Error> {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut files = vec![self.observed.signals.as_fd()];
        files.extend(self.observed.ends.iter().map(AsFd::as_fd));
        files.extend(self.ground.rings.descriptors());
        files.extend(self.unwinder.iter().map(|unwinder| unwinder.kernel().wakes()));
        let mut priority = Priority::raise();
        let asked = Instant::now();
        let ready = signals::poll(&files, timeout_ms).map_err(Error::system("waiting for records"))?;
        let late = asked.elapsed().saturating_sub(timeout);
        self.guard.iter_mut().for_each(|guard| guard.was_late(late));
        let gone: Vec<bool> = ready.iter().skip(1).take(self.observed.ends.len()).copied().collect();
        if ready.first() == Some(&true) || gone.contains(&true) {
            // The kernel spins while it frees a process, until the holder of its entry in /proc releases it (shrink_dcache_parent in
            // fs/dcache.c), and the holder would not run while a thread with a raised priority does.
            priority = None;
        }
        if let Some(end) = self.heed_signals().or_else(|| self.heed_ends(&gone)) {
            // No sample after the end: later activity does not belong to the target.
            self.stop();
            return Ok(Some(end));
        }
        let _priority = priority.or_else(Priority::raise);
        self.guard();
        self.heed_other_programs();
        self.slow_down();
        self.read(monotonic_ns());
        self.meet_arrived();
        self.meet_joined();
        self.account.look();
        self.ingest.processes().look_at_queues(false);
        self.grow();
        self.ingest.code().look_at_tables(self.unwind_memory);
        Ok(None)
    }

    /// Number of samples that the kernel dropped so far, and of records that were moved to a file and could not be read back. LOST records don't name
    /// the lost records: nearly all are samples. The last loss has no record, which is why the events are read too.
    pub fn lost(&self) -> u64 {
        let statistics = self.ingest.statistics();
        let lost_here = |one: &Sampled| self.passed(one).map_or(0, |passed| passed.lost);
        let lost: u64 = self.sampled.iter().map(|one| one.events.lost() + lost_here(one)).sum();
        lost.max(statistics.lost_samples + statistics.lost_records) + self.rings.lost()
    }

    /// The counts of an event whose samples a program takes.
    fn passed(&self, one: &Sampled) -> Option<ProbeCounts> {
        let place = self.sampled.iter().position(|other| other.id == one.id && !one.is_measure())?;
        let number = number_of(place, self.sampled.iter().map(|one| one.events_of_measure).sum());
        self.unwinder.as_ref()?.kernel().passed(number).filter(|_| one.events.is_taken())
    }

    /// Number of occurrences of an event, as far as known.
    fn counted(&self, one: &Sampled) -> Option<u64> {
        match one.events.is_taken() {
            true => self.passed(one).map(|passed| passed.times),
            false => one.events.counted(),
        }
    }

    fn read(&mut self, until_ns: u64) {
        let (ingest, belonging, event) = (&mut self.ingest, &self.belonging, self.sampled[0].id);
        let Some(unwinder) = &mut self.unwinder else {
            self.rings.drain(until_ns, |record| ingest.record(belonging.of(record, event), record));
            return;
        };
        // Before the records: when a message is sent, the records it depends on are in the rings already.
        unwinder.take(ingest);
        let mut between = unwinder.begin();
        self.rings.drain(until_ns, |record| {
            between.hand_out(ingest, record.timestamp().unwrap_or(0));
            ingest.record(belonging.of(record, event), record);
        });
        between.hand_out(ingest, until_ns);
        between.end(ingest);
        unwinder.add_counts(ingest, until_ns);
        if unwinder.is_due() {
            // Until the table is supplied, stacks are copied, so that the rings would soon be full.
            self.rings.moving(|| unwinder.supply(ingest), || {});
        }
    }

    /// Stops sampling.
    fn stop(&mut self) {
        self.sampled.iter().for_each(|one| one.events.stop());
        // On failure, slightly more is measured.
        let _ = self.unwinder.as_mut().map_or(Ok(()), AttachedUnwinder::unwatch);
        self.look_at_waits();
        if let Some(measure) = self.measure() {
            let _ = measure.stop();
        }
        self.set_back();
    }

    fn measure(&mut self) -> Option<&mut dyn Measure> {
        self.unwinder.as_mut()?.measure()
    }

    fn grow(&mut self) {
        let statistics = self.ingest.statistics();
        // Stacks that are copied only until their table is loaded do not justify larger copies.
        let wants = self.unwinder.as_ref().map_or(0, AttachedUnwinder::wants);
        if self.copies.wants != [wants; 2] {
            self.copies.wants = [self.copies.wants[1], wants];
            self.copies.sizer.grown(self.copies.sizer.bytes(), statistics.samples, statistics.beyond_copy);
            return;
        }
        let Some(bytes) = self.copies.sizer.wanted(statistics.samples, statistics.beyond_copy) else {
            return;
        };
        let grown = self.sampled.iter_mut().try_for_each(|one| one.events.grow(bytes));
        self.belonging.learn(&self.sampled);
        if grown.is_err() {
            // For example, out of descriptors: the events stay, and aren't enlarged again.
            self.copies.sizer = StackCopySizer::new(self.copies.sizer.bytes(), self.copies.sizer.bytes());
            return;
        }
        // Records in the rings still have the smaller copies.
        self.read(monotonic_ns());
        let statistics = self.ingest.statistics();
        self.copies.sizer.grown(bytes, statistics.samples, statistics.beyond_copy);
    }

    /// Lengthens the periods of events of which there are too many samples: before the records in the rings are unwound, as more arrive during that
    /// than fit.
    fn slow_down(&mut self) {
        if self.sampled.iter().all(|one| one.limit.is_none()) {
            return;
        }
        // A waiting record may belong to any event.
        let (waiting, elapsed_ns) = (self.rings.waiting(), nanoseconds(self.elapsed()));
        for index in 0..self.sampled.len() {
            let one = &self.sampled[index];
            let Some(limit) = one.limit else { continue };
            if one.events.is_taken() {
                if self.passed(one).is_some_and(|passed| passed.is_by_time) {
                    self.note_frequency(index);
                }
                continue;
            }
            let samples = self.ingest.weights().samples_of(one.id) + waiting;
            // Samples that a program handles wait in messages, where they can't be counted. Other events may be thousands, and slow to read.
            let counted =
                if one.events.is_walked_in_kernel() { one.events.counted().unwrap_or(0) } else { 0 };
            let next = limit.next(Progress { samples, counted, elapsed_ns });
            if next.period() == limit.period() {
                self.sampled[index].limit = Some(next);
            } else {
                self.change_period(index, next);
            }
        }
        self.belonging.learn(&self.sampled);
    }

    /// Notes that a program has begun to take samples by time.
    fn note_frequency(&mut self, index: usize) {
        let (hz, one) = (self.setup.frequency_hz, &mut self.sampled[index]);
        one.limit = None;
        one.events.note_pace(SamplingRate::Frequency(hz));
        self.say_frequent(index);
    }

    fn change_period(&mut self, index: usize, next: Limit) {
        let one = &mut self.sampled[index];
        let Some(since_ns) = one.events.change_period(next.period()) else {
            // The event stays as it was.
            one.limit = None;
            return;
        };
        one.limit = Some(next);
        self.ingest.weights().weigh_from(one.id, since_ns, next.period());
        self.say_frequent(index);
    }

    /// Notes the rate of a frequent event, and says once that it is.
    fn say_frequent(&mut self, index: usize) {
        let (hz, sampling) = (self.setup.frequency_hz, self.sampled[index].events.sampling());
        let name = sampling.counter.name();
        let text = format!(
            "{name} is frequent: each single one is a sample only at first, then there are about {hz} a second, \
             which stand for several each; to sample each: -c 1"
        );
        if !self.setup.limits.contains(&text) {
            self.setup.limits.push(text);
        }
        self.setup.events[index].pace = sampling.pace;
    }

    /// CPU time of the target so far, if known.
    pub fn target_cpu(&mut self) -> Option<CpuTime> {
        self.account.look();
        match (&self.ground.attachment, self.observed.exited) {
            (Attachment::Cgroup(cgroup), exited) => cgroup.cpu_time().or(exited.map(|(_, time)| time)),
            (_, Some((_, time))) => Some(time),
            (_, None) => self.account.used(),
        }
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanoseconds)
}
