//! A recording from beginning to end: the target is started or found, events count, records become a profile.

mod live;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plumb_profile::{DsoId, EventId, Meta, Profile, Scope};

use crate::account::Account;
use crate::assist::{self, Assistant, Assisted, HandedOver};
use crate::attr::Sampling;
use crate::attr::{Counter, Pace};
use crate::error::Error;
use crate::events::{Attachment, Events, Rings};
use crate::growth::Growth;
use crate::host::Host;
use crate::ingest::{Filter, Ingest, Source, Statistics};
use crate::limit::Limit;
use crate::merge::Merge;
use crate::off_cpu::{OffCpu, TimeOff, Unmeasured};
use crate::probe::Abilities;
use crate::procfs;
use crate::ring::Ring;
use crate::setup::{self, Setup};
use crate::steer::{Action, Steering};
use crate::sys::process::{Child, Held, pidfd};
use crate::sys::signals::{self, Signals};
use crate::sys::usage::{CpuTime, monotonic_ns, own_cpu_time, raise_file_limit};
use crate::tables::KeptTables;
use crate::target::{End, Launch, Options, Target};
use crate::trigger::Trigger;

/// Before a recording of what runs already, what walks stacks in the kernel gets the tables that it wants: until it has
/// wanted none for the first of these times, and no longer than the second.
const WARM_UP: (Duration, Duration) = (Duration::from_millis(30), Duration::from_secs(1));
/// At the end, accounts of processes are waited for until none has come for the first of these times, and no longer than
/// the second.
const SETTLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// A ring holds at least this many samples, so that the recorder may sleep a while.
const SAMPLES_IN_RING: usize = 64;

/// A recording that is going on.
pub struct Recorder {
    host: Host,
    setup: Setup,
    signals: Signals,
    steering: Steering,
    child: Option<Child>,
    exited: Option<(ExitStatus, CpuTime)>,
    /// Become readable when the processes to be recorded end.
    ends: Vec<OwnedFd>,
    pids: Vec<u32>,
    whom: Whom,
    events: Events,
    rings: Merge<Ring>,
    growth: Growth,
    /// Until when each occurrence of the event is a sample.
    limit: Option<Limit>,
    ingest: Ingest,
    assisted: Option<Assisted>,
    event: EventId,
    off_cpu: Option<Box<dyn OffCpu>>,
    times: Vec<TimeOff>,
    account: Account,
    began: Began,
    /// Earlier samples are gone.
    has_forgotten: bool,
    /// What was wanted when it was looked at the growth of copies.
    wants: [u64; 2],
}

/// What a recording of processes that it didn't start goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The processes that were named; none: it has no end of its own.
    Named,
    /// All that descend from them.
    Descendants,
    /// Those that begin to run a program.
    Awaited,
}

impl Whom {
    fn of(target: &Target) -> Self {
        match target {
            Target::Tree(_) => Whom::Descendants,
            Target::Awaited(_) => Whom::Awaited,
            Target::Command(_) | Target::Processes(_) | Target::Cgroup(_) | Target::Machine => Whom::Named,
        }
    }
}

/// When a recording began.
struct Began {
    monotonic_ns: u64,
    unix_ns: u64,
    own: CpuTime,
}

/// A finished recording.
pub struct Recorded {
    /// What was recorded: addresses, not names. Its `meta` is filled in but for what only the caller knows.
    pub profile: Profile,
    /// What became of the samples.
    pub statistics: Statistics,
    /// How it was recorded.
    pub setup: Setup,
    /// Processor time of the target, user and kernel apart, if it is known.
    pub target_cpu: Option<CpuTime>,
    /// A command that outlives its recording.
    pub running: Option<Running>,
    /// What was walked in the kernel, and what was not; `None`: nothing was to be.
    pub handed_over: Option<HandedOver>,
    /// Times off the processor that are not in the profile; `None`: they were not measured.
    pub unmeasured: Option<Unmeasured>,
    /// Files that were deleted or replaced while the target used them, held open so that symbols can be read.
    pub vanished: Vec<(DsoId, File)>,
}

/// A command that still runs.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Asks it to end (SIGTERM). It may take its time, or refuse.
    pub fn terminate(&self) -> std::io::Result<()> {
        signals::send(self.0.pid(), libc::SIGTERM)
    }

    /// Waits for its end.
    pub fn wait(self) -> std::io::Result<Option<ExitStatus>> {
        Ok(self.0.wait()?.map(|(status, _)| status))
    }
}

impl Recorder {
    /// Begins to record. A command has begun its program when this returns.
    pub fn start(target: &Target, options: &Options) -> Result<Self, Error> {
        Self::start_with(target, options, None)
    }

    /// Begins to record with something that walks stacks in the kernel, if there is such a thing.
    pub fn start_with(
        target: &Target,
        options: &Options,
        assistant: Option<Box<dyn Assistant>>,
    ) -> Result<Self, Error> {
        Self::start_off_cpu(target, options, assistant, None)
    }

    /// Likewise, but if there is something that measures time off the processor, that is what is recorded, with the stacks of
    /// threads as they are switched out: the counter of `options` has no effect then.
    pub fn start_off_cpu(
        target: &Target,
        options: &Options,
        assistant: Option<Box<dyn Assistant>>,
        mut off_cpu: Option<Box<dyn OffCpu>>,
    ) -> Result<Self, Error> {
        let mut options = options.clone();
        if off_cpu.is_some() {
            options.counter = Some(Counter::Trigger(Arc::new(Trigger::switches())));
        }
        let options = &options;
        let own = own_cpu_time();
        let host = Host::read();
        raise_file_limit();
        check(target)?;
        let mut abilities = Abilities::find(&host, false);
        let machine = std::mem::replace(&mut abilities.machine, Ok(()));
        let (sampling, frequency_hz, mut limits) = setup::choose(&host, abilities, options)?;
        let (rings, mapped) = Rings::map(&host.cpus)?;
        let signals = Signals::watch().map_err(Error::system("watching for signals"))?;
        let held = match target {
            Target::Command(launch) => Some(hold(launch, options.silent, &signals)?),
            _ => None,
        };
        let pids = match (&held, target) {
            (Some(held), _) => vec![held.pid()],
            (None, Target::Processes(pids)) => pids.clone(),
            (None, Target::Tree(root)) => procfs::tree(&[*root]),
            (None, _) => Vec::new(),
        };
        let attachment = setup::attach(&host, machine, target, &pids, (&sampling, &mut limits))?;
        let scope = setup::scope(&attachment, target);
        let account = Account::open(&attachment, target, &pids);
        let growth = Growth::new(sampling.stack_copy, (rings.bytes / SAMPLES_IN_RING) as u32);
        let began = Began { monotonic_ns: monotonic_ns(), unix_ns: unix_ns(), own };
        let mut assistant = assistant;
        if let Some(assistant) = &mut assistant {
            follow_with(&mut **assistant, target, &attachment, &pids)?;
        }
        if let Some(off_cpu) = &mut off_cpu {
            follow_off_cpu(&mut **off_cpu, target, &attachment, &pids)?;
        }
        let program = assistant.as_deref().map(|assistant| assistant.program().try_clone_to_owned());
        let program = program.transpose().map_err(Error::system("keeping a program"))?;
        let sampling = Sampling { stack_copy: growth.bytes(), ..sampling };
        // A program decides on samples of clocks and software events only.
        let program = program.filter(|_| sampling.takes_programs());
        let limit =
            (options.period.is_none() && sampling.pace == Pace::Period(1)).then(|| Limit::new(frequency_hz));
        let mut events = Events::start(rings, attachment, sampling, program)?;
        limit.map_or(Ok(()), |_| events.prepare(Pace::Frequency(frequency_hz)))?;
        let mut ingest = ingest_for(target, &events, &pids);
        ingest.scan_stacks(options.scan);
        if options.keep_tables {
            ingest.use_tables(KeptTables::open());
        }
        if let Target::Awaited(program) = target {
            ingest.await_program(program.clone());
        }
        let sampling = events.sampling().clone();
        ingest.weigh_each(sampling.period().unwrap_or(1));
        let event = add_event(&mut ingest, &sampling.counter, off_cpu.is_some());
        let info = sampling.parse_info();
        let Sampling { counter, code, pace, .. } = sampling;
        let mut recorder = Self {
            setup: Setup { counter, code, frequency_hz, pace, scope, limits },
            limit,
            ends: pids.iter().filter_map(|&pid| pidfd(pid).ok()).collect(),
            rings: Merge::new(mapped, info),
            steering: Steering::default(),
            child: None,
            exited: None,
            host,
            signals,
            pids,
            whom: Whom::of(target),
            events,
            growth,
            ingest,
            assisted: assistant.map(Assisted::new),
            event,
            off_cpu,
            times: Vec::new(),
            account,
            began,
            has_forgotten: false,
            wants: [0; 2],
        };
        recorder.begin(target)?;
        recorder.ingest.profile_mut().meta.start_ns = recorder.began.monotonic_ns;
        if let (Some(held), Target::Command(launch)) = (held, target) {
            recorder.child = Some(release(held, launch)?);
        }
        Ok(recorder)
    }

    /// Has samples count from now on.
    fn begin(&mut self, target: &Target) -> Result<(), Error> {
        if self.assisted.is_none() {
            return Ok(());
        }
        if !matches!(target, Target::Command(_)) {
            self.warm_up()?;
            self.account = Account::open(self.events.attachment(), target, &self.pids);
            (self.began.monotonic_ns, self.began.unix_ns) = (monotonic_ns(), unix_ns());
        }
        match &mut self.assisted {
            Some(assisted) => assisted.start().map_err(Error::system("starting what walks stacks")),
            None => Ok(()),
        }
    }

    /// Supplies tables until nothing that runs wants any, so that the first samples need not be copied.
    fn warm_up(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let (mut wants, mut last) = (0, begin);
        while last.elapsed() < WARM_UP.0 && begin.elapsed() < WARM_UP.1 {
            let files: Vec<_> = self.assisted.iter().map(|assisted| assisted.assistant().wakes()).collect();
            let left = WARM_UP.0.saturating_sub(last.elapsed()).as_millis() as i32 + 1;
            signals::poll(&files, left).map_err(Error::system("waiting for messages"))?;
            self.read(monotonic_ns());
            let now = self.assisted.as_ref().map_or(0, Assisted::wants);
            if now != wants {
                (wants, last) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// What is recorded, and where that is less than what was asked for.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What became of the samples so far.
    pub fn statistics(&self) -> &Statistics {
        self.ingest.statistics()
    }

    /// The frames and files so far. More of them may come, but none changes or goes away.
    pub fn profile(&self) -> &Profile {
        self.ingest.profile()
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.began.monotonic_ns))
    }

    /// Sleeps until there are records to read, the target ends or `timeout` has passed, and reads the records.
    /// `Some` once the recording is to be finished.
    pub fn step(&mut self, timeout: Duration) -> Result<Option<End>, Error> {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut files = vec![self.signals.as_fd()];
        files.extend(self.ends.iter().map(AsFd::as_fd));
        files.extend(self.events.rings().descriptors());
        files.extend(self.assisted.iter().map(|assisted| assisted.assistant().wakes()));
        files.extend(self.off_cpu.iter().map(|off_cpu| off_cpu.wakes()));
        let ready = signals::poll(&files, timeout_ms).map_err(Error::system("waiting for records"))?;
        let gone: Vec<bool> = ready.iter().skip(1).take(self.ends.len()).copied().collect();
        if let Some(end) = self.heed_signals().or_else(|| self.heed_ends(&gone)) {
            // No sample after the end: what others do in the meantime is not the target's.
            self.events.stop();
            return Ok(Some(end));
        }
        self.slow_down();
        self.take_times();
        self.read(monotonic_ns());
        self.meet_arrived();
        self.account.look();
        self.grow();
        self.ingest.look_at_tables();
        Ok(None)
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Recorded {
        self.events.stop();
        let ended = monotonic_ns();
        let target_cpu = self.target_cpu();
        self.read(u64::MAX);
        self.settle();
        self.take_times();
        let pending = self.off_cpu.as_ref().map_or(Vec::new(), |off_cpu| off_cpu.pending(ended));
        pending.into_iter().for_each(|time| self.ingest.time_off(time));
        let unmeasured = self.off_cpu.as_ref().map(|off_cpu| off_cpu.unmeasured());
        let mut meta = self.facts(ended, target_cpu);
        let is_scaled = self.setup.counter.trigger().is_some_and(|trigger| !trigger.is_hardware());
        if let (true, Some(_), Some(paced)) = (is_scaled, self.occurrences(), self.events.paced()) {
            let (since, before, counted) = paced;
            self.ingest.scale(0..since, before);
            self.ingest.scale(since..u64::MAX, counted);
        }
        let running = if self.exited.is_none() { self.child.map(Running) } else { None };
        let lost = self.lost();
        let vanished = self.ingest.vanished();
        let handed_over = self.assisted.as_ref().map(|assisted| assisted.assistant().handed_over());
        let (mut profile, mut statistics) = self.ingest.finish();
        statistics.lost_samples = lost;
        meta.damaged_records = statistics.damaged_records;
        profile.meta = meta;
        Recorded {
            profile,
            statistics,
            setup: self.setup,
            target_cpu,
            running,
            handed_over,
            unmeasured,
            vanished,
        }
    }

    /// What is known of the recording as a whole.
    fn facts(&self, ended_ns: u64, target_cpu: Option<CpuTime>) -> Meta {
        let mut meta = self.ingest.profile().meta.clone();
        meta.host = self.host.name.clone();
        meta.kernel = self.host.kernel.clone();
        meta.arch = std::env::consts::ARCH.into();
        meta.cpus = u32::try_from(self.host.cpus.len()).unwrap_or(u32::MAX);
        meta.start_unix_ns = self.began.unix_ns;
        meta.start_ns = self.began.monotonic_ns;
        meta.duration_ns = ended_ns.saturating_sub(self.began.monotonic_ns);
        meta.frequency_hz = match self.setup.pace {
            Pace::Frequency(hz) => Some(hz),
            Pace::Period(_) => None,
        };
        meta.occurrences = self.occurrences();
        meta.scope = self.setup.scope;
        meta.target_cpu_ns = target_cpu.map(|time| nanoseconds(time.total()));
        meta.recorder_cpu_ns = Some(nanoseconds(own_cpu_time().since(self.began.own).total()));
        meta.lost_samples = self.lost();
        meta.damaged_records = self.ingest.statistics().damaged_records;
        meta.stack_copy_bytes = self.events.sampling().stack_copy;
        meta.warnings.extend(self.setup.limits.iter().cloned());
        meta
    }

    /// Samples that the kernel dropped so far. LOST records don't say what was lost: nearly all that is in the rings is
    /// samples. The last loss has no record that tells of it, which is why the events are asked too.
    pub fn lost(&self) -> u64 {
        let statistics = self.ingest.statistics();
        self.events.lost().max(statistics.lost_samples + statistics.lost_records)
    }

    fn take_times(&mut self) {
        let Some(off_cpu) = &mut self.off_cpu else { return };
        off_cpu.take(&mut self.times);
        self.times.drain(..).for_each(|time| self.ingest.time_off(time));
    }

    /// How often the event happened to the target, where the events count nothing else.
    fn occurrences(&self) -> Option<u64> {
        let is_target = match self.events.attachment() {
            Attachment::Cgroup(_) | Attachment::Processes(_) => true,
            Attachment::Everyone => self.setup.scope == Scope::System,
        };
        matches!(self.setup.counter, Counter::Trigger(_))
            .then(|| self.events.counted())?
            .filter(|_| is_target)
    }

    /// Takes what comes late: the kernel frees a task, and so closes its account, milliseconds after its exit.
    fn settle(&mut self) {
        if self.assisted.is_none() {
            return;
        }
        // Counts may wait for a message of the last look.
        self.read(u64::MAX);
        let (begin, mut last, mut open) = (Instant::now(), Instant::now(), self.ingest.open_accounts());
        while open > 0 && last.elapsed() < SETTLE.0 && begin.elapsed() < SETTLE.1 {
            std::thread::sleep(Duration::from_millis(5));
            self.read(u64::MAX);
            if open != std::mem::replace(&mut open, self.ingest.open_accounts()) {
                last = Instant::now();
            }
        }
    }

    fn heed_signals(&mut self) -> Option<End> {
        while let Some(signal) = self.signals.next() {
            let running = self.child.filter(|_| self.exited.is_none());
            match self.steering.on(signal, running.is_some(), Instant::now()) {
                Action::Ignore => {}
                Action::Reap => {
                    if let Some(end) = self.reap() {
                        return Some(end);
                    }
                }
                Action::PassOn(number) => {
                    if let Some(child) = running {
                        let _ = signals::send(child.pid(), number);
                    }
                }
                Action::End(number) => return self.reap().or(Some(End::Signal(number))),
            }
        }
        self.steering.overdue(Instant::now()).map(End::Signal)
    }

    fn reap(&mut self) -> Option<End> {
        let exited = self.child?.try_wait().ok()??;
        self.exited = Some(exited);
        Some(End::Exited(exited.0))
    }

    /// Forgets processes that have ended; an end if there is none left.
    fn heed_ends(&mut self, gone: &[bool]) -> Option<End> {
        if self.child.is_some() {
            // SIGCHLD tells too, unless another thread of the program takes it.
            return if gone.contains(&true) { self.reap() } else { None };
        }
        if let Attachment::Cgroup(cgroup) = self.events.attachment() {
            return cgroup.is_gone().then_some(End::Gone);
        }
        if self.pids.is_empty() {
            return None;
        }
        if self.whom != Whom::Named && (gone.contains(&true) || self.ends.is_empty()) {
            return self.heed_gone(gone);
        }
        if gone.contains(&true) {
            let mut gone = gone.iter();
            self.ends.retain(|_| !gone.next().copied().unwrap_or(false));
            // A process that has ended shows as a zombie until its parent takes notice.
            return self.ends.is_empty().then_some(End::Gone);
        }
        // Without pidfds (before kernel 5.3) the look at /proc does.
        let all_gone = self.ends.is_empty() && !self.pids.iter().any(|&pid| procfs::exists(pid));
        all_gone.then_some(End::Gone)
    }

    /// Some of those that the recording goes by have ended; an end if nobody is left who matters.
    fn heed_gone(&mut self, gone: &[bool]) -> Option<End> {
        let mut gone = gone.iter();
        self.ends.retain(|_| !gone.next().copied().unwrap_or(false));
        // Who was forked, or has begun, is in the records.
        self.read(monotonic_ns());
        self.meet_arrived();
        let is_left = match self.whom {
            Whom::Descendants => self.ingest.has_followed(procfs::is_alive),
            Whom::Named | Whom::Awaited => !self.ends.is_empty(),
        };
        (!is_left).then_some(End::Gone)
    }

    /// Processes have begun to run the program that is waited for: with the first of them the recording begins.
    fn meet_arrived(&mut self) {
        for pid in self.ingest.take_arrived() {
            if self.pids.is_empty() {
                self.began = Began { monotonic_ns: monotonic_ns(), unix_ns: unix_ns(), own: self.began.own };
            }
            self.pids.push(pid);
            self.account.add(pid);
            self.ends.extend(pidfd(pid).ok());
            self.assisted.iter_mut().for_each(|assisted| assisted.follow(pid));
            if let (Some(off_cpu), Ok(descriptor)) = (&mut self.off_cpu, pidfd(pid)) {
                // It may have gone.
                let _ = off_cpu.follow(descriptor.as_fd());
            }
        }
    }

    /// Whether it still waits for a process to begin.
    pub fn is_waiting(&self) -> bool {
        self.whom == Whom::Awaited && self.pids.is_empty()
    }

    fn read(&mut self, until_ns: u64) {
        let (ingest, event) = (&mut self.ingest, self.event);
        let Some(assisted) = &mut self.assisted else {
            self.rings.drain(until_ns, |record| ingest.record(event, record));
            return;
        };
        // Before the records: what a message depends on is in the rings by the time it was sent.
        assisted.take();
        let mut between = assisted.begin();
        self.rings.drain(until_ns, |record| {
            between.hand_out(ingest, event, record.timestamp().unwrap_or(0));
            ingest.record(event, record);
        });
        between.hand_out(ingest, event, until_ns);
        between.end(ingest);
        assisted.add_counts(ingest, event, until_ns);
    }

    fn grow(&mut self) {
        let statistics = self.ingest.statistics();
        // What is copied only until its table is there is no reason to copy more of everything from then on.
        let wants = self.assisted.as_ref().map_or(0, Assisted::wants);
        if self.wants != [wants; 2] {
            self.wants = [self.wants[1], wants];
            self.growth.grown(self.growth.bytes(), statistics.samples, statistics.beyond_copy);
            return;
        }
        let Some(bytes) = self.growth.wanted(statistics.samples, statistics.beyond_copy) else { return };
        if self.events.grow(bytes).is_err() {
            // Out of descriptors, say: what is there goes on, and isn't asked to grow again.
            self.growth = Growth::new(self.growth.bytes(), self.growth.bytes());
            return;
        }
        // What is in the rings still has the smaller copies.
        self.read(monotonic_ns());
        let statistics = self.ingest.statistics();
        self.growth.grown(bytes, statistics.samples, statistics.beyond_copy);
    }

    /// Goes on by frequency, once single occurrences are too many: before what waits in the rings is unwound, as more comes
    /// meanwhile than there is room for.
    fn slow_down(&mut self) {
        let Some(limit) = self.limit else { return };
        let Statistics { samples, filtered, .. } = *self.ingest.statistics();
        let samples = samples + filtered + self.rings.waiting();
        if !limit.is_exceeded(samples, nanoseconds(self.elapsed())) {
            return;
        }
        self.limit = None;
        // Should that fail, it goes on as it was.
        if self.events.change_pace() {
            let (hz, name) = (self.setup.frequency_hz, self.setup.counter.name());
            self.setup.pace = self.events.sampling().pace;
            self.setup.limits.push(match self.off_cpu {
                Some(_) => format!(
                    "threads are switched often: stacks are taken each single time only at first, then at most {hz} times a second \
                     (-F), and the other times are shown without"
                ),
                None => format!(
                    "{name} is frequent: each single one is a sample only at first, then there are at most {hz} a second, \
                     which stand for several each; to sample each: -c 1"
                ),
            });
        }
    }

    /// Processor time that the target used so far, if it is known.
    pub fn target_cpu(&mut self) -> Option<CpuTime> {
        self.account.look();
        match (self.events.attachment(), self.exited) {
            (Attachment::Cgroup(cgroup), exited) => cgroup.cpu_time().or(exited.map(|(_, time)| time)),
            (_, Some((_, time))) => Some(time),
            (_, None) => self.account.used(),
        }
    }
}

fn check(target: &Target) -> Result<(), Error> {
    let pids = match target {
        Target::Processes(pids) => &pids[..],
        Target::Tree(root) => std::slice::from_ref(root),
        _ => return Ok(()),
    };
    match pids.iter().find(|&&pid| !procfs::exists(pid)) {
        Some(&pid) => Err(Error::NoSuchProcess(pid)),
        None => Ok(()),
    }
}

fn hold(launch: &Launch, silent: bool, signals: &Signals) -> Result<Held, Error> {
    Held::fork(launch.command(silent), &launch.name(), signals.before())
        .map_err(|error| failed(launch, error))
}

fn release(held: Held, launch: &Launch) -> Result<Child, Error> {
    held.release().map_err(|error| failed(launch, error))
}

fn failed(launch: &Launch, error: std::io::Error) -> Error {
    Error::Command { name: launch.program.to_string_lossy().into_owned(), error: launch.explain(error) }
}

fn ingest_for(target: &Target, events: &Events, pids: &[u32]) -> Ingest {
    let tree = procfs::tree(pids);
    let filter = match (events.attachment(), target) {
        (Attachment::Everyone, Target::Machine) => Filter::All,
        (Attachment::Everyone, _) => Filter::Tree(tree.clone()),
        _ => Filter::All,
    };
    let mut ingest = Ingest::new(Source::Live, filter);
    // After the events have started: what happens from then on comes as records.
    if let Target::Machine = target {
        ingest.read_all_processes();
    }
    let inside = match (events.attachment(), target) {
        (Attachment::Cgroup(cgroup), Target::Cgroup(_)) => cgroup.pids(),
        _ => Vec::new(),
    };
    // Also where all are kept: when the last of them ends matters.
    tree.iter().for_each(|&pid| ingest.follow(pid));
    tree.into_iter().chain(inside).for_each(|pid| ingest.read_process(pid));
    ingest
}

/// Has an assistant follow the target, where the events are everybody's.
fn follow_with(
    assistant: &mut dyn Assistant,
    target: &Target,
    attachment: &Attachment,
    pids: &[u32],
) -> Result<(), Error> {
    match (attachment, target) {
        (Attachment::Everyone, Target::Machine) => Ok(()),
        (Attachment::Everyone, Target::Awaited(program)) => assistant.await_comm(program.comm()),
        (Attachment::Everyone, _) => assist::follow(assistant, pids),
        _ => Ok(()),
    }
    .map_err(Error::system("following processes"))
}

/// Has what measures time off the processor follow the target.
fn follow_off_cpu(
    off_cpu: &mut dyn OffCpu,
    target: &Target,
    attachment: &Attachment,
    pids: &[u32],
) -> Result<(), Error> {
    let followed = match (target, attachment) {
        (Target::Machine, _) => off_cpu.follow_all(),
        (Target::Cgroup(_), Attachment::Cgroup(cgroup)) => {
            assist::follow_all(&cgroup.pids(), |pid| off_cpu.follow(pid))
        }
        _ => assist::follow_all(pids, |pid| off_cpu.follow(pid)),
    };
    followed.map_err(Error::system("following processes"))
}

/// Declares what is sampled.
fn add_event(ingest: &mut Ingest, counter: &Counter, is_off_cpu: bool) -> EventId {
    if !is_off_cpu {
        return ingest.add_event(counter.name(), counter.unit());
    }
    let (blocked, waited) = (ingest.add_event("off-cpu", "ns"), ingest.add_event("run-queue", "ns"));
    ingest.weigh_by_time_off(blocked, waited);
    blocked
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanoseconds)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
