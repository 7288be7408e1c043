//! The start of a recording: opens events, holds or finds the target, and releases it once the events count.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_capture_api::{Accumulation, KernelUnwinder, MeasuredEvent, SamplingRate, TargetObserver};
use plumb_ingest::{Filter, Ingest, Source};
use plumb_process::usage::{monotonic_ns, own_cpu_time, raise_file_limit};
use plumb_process::{Host, can_observe, procfs};
use plumb_profile::{EventId, Id, Scope};
use plumb_table_cache::TableCache;
use plumb_target::begin::{check, follow_all, release};
use plumb_target::{Held, Target, TargetError, signals};

use super::Recorder;
use super::assign::{assign, number_of};
use super::began::Began;
use super::copies::StackCopies;
use super::guard::Guard;
use super::intake::SampleIntake;
use super::other_programs::OtherProgramsWatch;
use super::sampled::{Sampled, SampledEvents};
use super::target::{FoundTarget, RecordedTarget};
use crate::account::Account;
use crate::attr::{Code, Counter, Sampling};
use crate::error::Error;
use crate::events::{Attachment, EventContext, Events, Program, Rings};
use crate::limit::Limit;
use crate::merge::Merge;
use crate::options::{EventSpec, SamplingOptions};
use crate::overflow::OverflowBuffer;
use crate::probe::Abilities;
use crate::setup::{self, Setup};
use crate::stack_copy::StackCopySizer;
use crate::trigger::Trigger;
use crate::unwinder::{self, AttachedUnwinder};

/// Limits for loading requested tables before a recording of running processes: the time without a request,
/// and the total time.
const WARM_UP: (Duration, Duration) = (Duration::from_millis(30), Duration::from_secs(1));
/// Smallest number of samples that fit in a ring, so that the recorder may sleep a while.
const SAMPLES_IN_RING: usize = 64;

impl Recorder {
    /// Starts to record. A command has started its program when this returns.
    pub fn start(target: &Target, options: &SamplingOptions) -> Result<Self, Error> {
        Self::start_beside(target, options, None, None)
    }

    /// Starts to record with a kernel unwinder, if one is given. If it measures off-CPU time, that is recorded too, or alone
    /// if `options` names no counter. `beside`: an observer of the target that starts with the recording and is ended by the caller.
    pub fn start_beside(
        target: &Target,
        options: &SamplingOptions,
        mut unwinder: Option<Box<dyn KernelUnwinder>>,
        mut beside: Option<&mut dyn TargetObserver>,
    ) -> Result<Self, Error> {
        can_observe().map_err(Error::Machine)?;
        let options = options_with(options, &mut unwinder);
        let own = own_cpu_time();
        let host = Host::read();
        // If that fails, opening events says so.
        let _ = raise_file_limit();
        check(target)?;
        let (choice, machine) = choose(&host, &options)?;
        let setup::Choice { events: wanted, frequency_hz, cycles_per_ns, mut limits } = choice;
        let (rings, mapped) = Rings::map(&host.cpus, wanted.iter().any(Sampling::is_each))?;
        let (found, held) = FoundTarget::hold(target, &options)?;
        let pids = &found.pids;
        let attachment = setup::attach(&host, machine, target, pids, (&wanted[0], &mut limits))?;
        let scope = setup::scope(&attachment, target);
        let account = Account::open(&attachment, target, pids);
        let sizer = StackCopySizer::new(wanted[0].stack_copy, (rings.bytes / SAMPLES_IN_RING) as u32);
        let began = Began::now(own, pids);
        follow_target(target, &attachment, pids, (&mut unwinder, &mut beside))?;
        let context = Arc::new(EventContext { rings, attachment });
        let by_frequency = options.period.is_none().then_some(frequency_hz);
        let wanted = wanted.into_iter().map(|one| Sampling { stack_copy: sizer.bytes(), ..one }).collect();
        let (opened, mut unwinder) = open_all(&context, wanted, unwinder, by_frequency, &mut limits)?;
        let mut ingest = ingest_for(target, &context.attachment, pids, &options);
        let events = SampledEvents::new(declare_all(&mut ingest, opened, &mut unwinder, scope));
        let ids = numbered(&events);
        let info = events.first().events.sampling().parse_info();
        let waiting = |ring| OverflowBuffer::new(ring).in_directory(options.overflow_directory.clone());
        let mut recorder = Self {
            setup: Setup { events: events.iter().map(Sampled::setup).collect(), frequency_hz, scope, limits },
            began,
            target: RecordedTarget::watch(found, target, (context.clone(), account)),
            guard: Guard::new(&events, &host, cycles_per_ns),
            host,
            samples: SampleIntake {
                context,
                rings: Merge::new(mapped.into_iter().map(waiting).collect(), info),
                unwinder: unwinder.map(|unwinder| AttachedUnwinder::new(unwinder, ids)),
                ingest,
                unwind_memory: options.unwind_memory,
                is_weighed_later: events.are_weighed_later(),
                has_folded: false,
            },
            events,
            copies: StackCopies::new(sizer),
            other_programs: OtherProgramsWatch::default(),
        };
        recorder.begin(target)?;
        recorder.let_go(target, held, beside)?;
        Ok(recorder)
    }

    /// Releases the target, once all is in place.
    fn let_go(
        &mut self,
        target: &Target,
        held: Option<Held>,
        beside: Option<&mut dyn TargetObserver>,
    ) -> Result<(), Error> {
        if !matches!(target, Target::Machine) {
            self.samples.ingest.processes().watch_queues();
        }
        let begun = beside.map_or(Ok(()), TargetObserver::begin);
        begun.map_err(Error::system("starting what watches beside"))?;
        if held.is_some() {
            // The preparation time, while it was held, does not belong to the command.
            self.began.again(self.target.pids());
        }
        self.samples.ingest.profile_mut().meta.start_ns = self.began.monotonic_ns;
        if let (Some(held), Target::Command(launch)) = (held, target) {
            self.target.child = Some(release(held, launch)?);
        }
        Ok(())
    }

    /// Starts counting samples.
    fn begin(&mut self, target: &Target) -> Result<(), Error> {
        if self.samples.unwinder.is_none() {
            return Ok(());
        }
        // A command is held, and has not waited for anything of its own yet.
        let is_running = !matches!(target, Target::Command(_));
        if is_running {
            self.warm_up()?;
            self.target.begin_account(target);
            self.began.again(self.target.pids());
        }
        let late = self.events.iter().map(|one| &one.events).filter(|events| !events.is_walked_in_kernel());
        late.into_iter().try_for_each(Events::start)?;
        let SampleIntake { unwinder: Some(unwinder), ingest, .. } = &mut self.samples else { return Ok(()) };
        unwinder.start().map_err(Error::system("starting what walks stacks"))?;
        if is_running && let Err(error) = unwinder.look_at_threads(ingest, false) {
            self.setup.limits.push(format!(
                "threads that were off the processor before the recording began are missing until they run: {error}"
            ));
        }
        Ok(())
    }

    /// Loads tables until no running process requests one, so that the first samples need not be copied.
    fn warm_up(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let (mut wants, mut last) = (0, begin);
        while last.elapsed() < WARM_UP.0 && begin.elapsed() < WARM_UP.1 {
            let files: Vec<_> = self.samples.kernel().map(KernelUnwinder::wakes).into_iter().collect();
            let left = WARM_UP.0.saturating_sub(last.elapsed()).as_millis() as i32 + 1;
            signals::poll(&files, left).map_err(Error::system("waiting for messages"))?;
            self.samples.read(&self.events, monotonic_ns());
            self.guard();
            let now = self.samples.wants();
            if now != wants {
                (wants, last) = (now, Instant::now());
            }
        }
        Ok(())
    }
}

/// Chooses the events, and whether the whole machine may be sampled.
fn choose(host: &Host, options: &SamplingOptions) -> Result<(setup::Choice, io::Result<()>), Error> {
    let mut abilities = Abilities::find(host, false);
    let machine = std::mem::replace(&mut abilities.machine, Ok(()));
    Ok((setup::choose(host, abilities, options)?, machine))
}

/// The options, with the event of the kernel unwinder's measurement, if it has one: together with the requested events, or alone
/// without any.
fn options_with(
    options: &SamplingOptions,
    unwinder: &mut Option<Box<dyn KernelUnwinder>>,
) -> SamplingOptions {
    let mut options = options.clone();
    if let Some((&[first, ..], _)) = unwinder.as_mut().and_then(measured) {
        let counter = Counter::Trigger(Arc::new(Trigger::of_measure(first)));
        match options.counter {
            Some(_) => {
                let measured = EventSpec { counter, code: Code::All, period: Some(1), is_copied: false };
                options.also.push(measured);
            }
            None => (options.counter, options.period) = (Some(counter), Some(1)),
        }
    }
    options
}

/// Events of a measurement.
type Measured = (&'static [MeasuredEvent], Accumulation);

fn measured(unwinder: &mut Box<dyn KernelUnwinder>) -> Option<Measured> {
    unwinder.measure().map(|measure| (measure.events(), measure.accumulation()))
}

/// The events by program number: those of a measurement come first.
fn numbered(events: &SampledEvents) -> Vec<EventId> {
    let measured = events.iter().flat_map(|one| {
        let first = one.id.index();
        (first..first + one.events_of_measure).map(EventId::from_index)
    });
    measured.chain(events.iter().filter(|one| one.number.is_some()).map(|one| one.id)).collect()
}

/// Opens all events, and starts those that may start before samples count. Returns the kernel unwinder if any event
/// uses it.
#[allow(clippy::type_complexity, reason = "events with their limits, and what came in")]
fn open_all(
    context: &Arc<EventContext>,
    mut wanted: Vec<Sampling>,
    mut unwinder: Option<Box<dyn KernelUnwinder>>,
    by_frequency: Option<u32>,
    limits: &mut Vec<String>,
) -> Result<(Vec<(Events, Option<Limit>)>, Option<Box<dyn KernelUnwinder>>), Error> {
    let programs = match &mut unwinder {
        Some(unwinder) => assign(&mut wanted, &mut **unwinder, context, by_frequency, limits)?,
        None => wanted.iter().map(|_| Program::Absent).collect(),
    };
    let is_used = programs.iter().any(|program| !matches!(program, Program::Absent));
    let unwinder = unwinder.filter(|_| is_used);
    let open = |(sampling, program)| open_events(context, sampling, program, by_frequency);
    let all = wanted.into_iter().zip(programs).map(open).collect::<Result<Vec<_>, _>>()?;
    // Events that no program handles would count too early.
    let is_early = |events: &Events| unwinder.is_none() || events.is_walked_in_kernel();
    all.iter().filter(|(events, _)| is_early(events)).try_for_each(|(events, _)| events.start())?;
    Ok((all, unwinder))
}

fn ingest_for(target: &Target, attachment: &Attachment, pids: &[u32], options: &SamplingOptions) -> Ingest {
    let tree = procfs::tree(pids);
    let filter = match (attachment, target) {
        (Attachment::Everyone, Target::Machine) => Filter::All,
        (Attachment::Everyone, _) => Filter::Tree(tree.clone()),
        _ => Filter::All,
    };
    let mut ingest = Ingest::new(Source::Live, filter);
    // After the events have started: later changes come as records.
    if let Target::Machine = target {
        ingest.processes().read_all_processes();
    }
    let inside = match (attachment, target) {
        (Attachment::Cgroup(cgroup), Target::Cgroup(_)) => cgroup.pids(),
        _ => Vec::new(),
    };
    // Also if all processes are recorded: the end of the last one matters.
    tree.iter().for_each(|&pid| ingest.processes().follow(pid));
    tree.into_iter().chain(inside).for_each(|pid| ingest.processes().read_process(pid));
    ingest.code().scan_stacks(options.scan);
    if options.keep_tables {
        ingest.code().use_tables(TableCache::open());
    }
    if let Target::Awaited(program) = target {
        ingest.processes().await_program(program.clone());
    }
    ingest
}

/// Lets everything except the events follow the target.
fn follow_target(
    target: &Target,
    attachment: &Attachment,
    pids: &[u32],
    (unwinder, beside): (&mut Option<Box<dyn KernelUnwinder>>, &mut Option<&mut dyn TargetObserver>),
) -> Result<(), Error> {
    if let Some(unwinder) = unwinder {
        follow_with(&mut **unwinder, target, attachment, pids)?;
    }
    match beside {
        Some(beside) => follow_beside(&mut **beside, target, attachment, pids),
        None => Ok(()),
    }
}

/// Lets an unwinder follow the target, if the events cover all processes, or its measurements do not come from events. For a command in
/// a cgroup of its own it follows the processes as well: it inspects each exec, and on a busy machine most belong to others.
fn follow_with(
    unwinder: &mut dyn KernelUnwinder,
    target: &Target,
    attachment: &Attachment,
    pids: &[u32],
) -> Result<(), Error> {
    let sees_all = unwinder.measure().is_some();
    let is_command = matches!(target, Target::Command(_));
    match (attachment, target) {
        (Attachment::Everyone, Target::Machine) => Ok(()),
        (Attachment::Cgroup(cgroup), Target::Cgroup(_)) if sees_all => {
            let pids = cgroup.some_pids().map_err(TargetError::Cgroup)?;
            unwinder::follow(unwinder, &pids)
        }
        (Attachment::Cgroup(_), _) if sees_all || is_command => unwinder::follow(unwinder, pids),
        (Attachment::Everyone, Target::Awaited(program)) => unwinder.await_comm(program.comm()),
        (Attachment::Everyone, _) => unwinder::follow(unwinder, pids),
        _ => Ok(()),
    }
    .map_err(Error::system("following processes"))
}

/// Lets an observer follow the target.
fn follow_beside(
    beside: &mut dyn TargetObserver,
    target: &Target,
    attachment: &Attachment,
    pids: &[u32],
) -> Result<(), Error> {
    // Before its exec, a command is part of the recorder.
    let from_exec = matches!(target, Target::Command(_));
    let inside = match (target, attachment) {
        (Target::Cgroup(_), Attachment::Cgroup(cgroup)) => Some(cgroup.pids()),
        _ => None,
    };
    let followed = match target {
        Target::Machine => beside.follow_all(),
        _ => beside.only_followed().and_then(|()| {
            follow_all(inside.as_deref().unwrap_or(pids), |pid| beside.follow(pid, from_exec))
        }),
    };
    followed.map_err(Error::system("following processes"))
}

/// Opens an event. `by_frequency`: the sampling rate to keep to if each occurrence is sampled and it turns out to be frequent.
fn open_events(
    context: &Arc<EventContext>,
    sampling: Sampling,
    program: Program,
    by_frequency: Option<u32>,
) -> Result<(Events, Option<Limit>), Error> {
    let each = sampling.pace == SamplingRate::Period(1) && !sampling.is_measure();
    let mut events = Events::new(context.clone(), sampling, program)?;
    let limit = by_frequency.filter(|_| each);
    if limit.is_some() && !events.is_taken() {
        events.prepare(SamplingRate::Period(Limit::first()))?;
    }
    Ok((events, limit.map(Limit::new)))
}

fn declare_all(
    ingest: &mut Ingest,
    opened: Vec<(Events, Option<Limit>)>,
    unwinder: &mut Option<Box<dyn KernelUnwinder>>,
    scope: Scope,
) -> Vec<Sampled> {
    let measure = unwinder.as_mut().and_then(measured);
    let declare = |(place, opened)| declare(ingest, place, opened, (measure, scope));
    opened.into_iter().enumerate().map(declare).collect()
}

/// Declares the event at a place in the order of the options; for that of a measurement, all events of `measure`.
fn declare(
    ingest: &mut Ingest,
    place: usize,
    (events, limit): (Events, Option<Limit>),
    (all_measure, scope): (Option<Measured>, Scope),
) -> Sampled {
    let sampling = events.sampling();
    let measure = all_measure.filter(|_| sampling.is_measure());
    let happens = sampling.counter.trigger().is_some_and(|trigger| !trigger.is_hardware());
    let id = ingest.add_event(sampling.counter.name(), sampling.counter.unit());
    if let Some((events, accumulation)) = measure {
        let others = events.iter().skip(1).map(|event| ingest.add_event(event.name, event.unit));
        let others: Vec<EventId> = others.collect();
        match (accumulation, &others[..]) {
            (Accumulation::Intervals, &[waited, ..]) => ingest.weights().weigh_by_time_off(id, waited),
            (Accumulation::Intervals, []) => {}
        }
    }
    if happens && scope == Scope::System {
        ingest.weights().keep_idle(id);
    }
    match &sampling.copier {
        Some(copier) => ingest.weights().weigh_as_said(id, copier.way_in.clone()),
        None => ingest.weights().weigh_each(id, sampling.period().unwrap_or(1)),
    }
    let number_of_events = |measure: Option<Measured>| measure.map_or(0, |(events, _)| events.len());
    let number = measure.is_none().then(|| number_of(place, number_of_events(all_measure)));
    Sampled { id, number, events_of_measure: number_of_events(measure), events, limit }
}
