//! From what is wanted to what can be had: counter, frequency, code, and whom the events are attached to.
//!
//! The order of preference: events on each processor scoped to a cgroup of the target; else on each processor, sorted
//! out while recording; else inherited by the target's threads, which loses much of short-lived processes, as the
//! kernel moves the counters of equal contexts between tasks instead of switching them.

use std::os::fd::AsFd;

use plumb_profile::{EventId, Scope};

use crate::attr::{Code, Counter, Pace, Part, Sampling};
use crate::cgroup::Cgroup;
use crate::error::{Asked, Error};
use crate::events::{Attachment, classify};
use crate::host::Host;
use crate::probe::Abilities;
use crate::sys::perf::{Event, Whom};
use crate::target::{Options, Target};

/// What is recorded, after what this machine and user allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The events, in the order in which they were asked for; at least one.
    pub events: Vec<SampledEvent>,
    /// Samples per second of processor time; of what isn't a clock, per second at most.
    pub frequency_hz: u32,
    /// Whom the events are attached to.
    pub scope: Scope,
    /// Where this is less than what was asked for: one sentence each, with what would allow more.
    pub limits: Vec<String>,
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledEvent {
    /// What the profile calls it.
    pub id: EventId,
    /// What samples are taken by.
    pub counter: Counter,
    /// Which code is sampled.
    pub code: Code,
    /// How often a sample is taken.
    pub pace: Pace,
}

/// What the counters, code and frequency can be, the first event first. The frequency is also that of a recording which doesn't go by it (yet).
pub(crate) fn choose(
    host: &Host,
    abilities: Abilities,
    options: &Options,
) -> Result<(Vec<Sampling>, u32, Vec<String>), Error> {
    let mut limits = Vec::new();
    abilities.own.map_err(|error| classify(error, Asked::Own))?;
    let counter = options.counter.clone().unwrap_or(abilities.counter);
    let mut wanted = vec![(counter, options.code)];
    wanted.extend(options.also.iter().cloned());
    if let (true, Err(error)) = (wanted.iter().any(|(_, code)| *code != Code::User), abilities.kernel) {
        if wanted.iter().any(|(_, code)| *code == Code::Kernel) {
            return Err(classify(error, Asked::Kernel));
        }
        wanted.iter_mut().for_each(|(_, code)| *code = Code::User);
        limits.push(format!(
            "user code only: the kernel is hidden ({}); to see it: sudo sysctl kernel.perf_event_paranoid=1",
            paranoid(host)
        ));
    }
    let mut frequency_hz = options.frequency_hz.max(1);
    if let Some(most) = host.max_sample_rate.filter(|&most| most > 0 && most < frequency_hz) {
        frequency_hz = most;
        limits.push(format!(
            "{most} samples a second, not {}: the kernel allows no more; to change it: \
             sudo sysctl kernel.perf_event_max_sample_rate={}",
            options.frequency_hz, options.frequency_hz
        ));
    }
    let several = wanted.len() > 1;
    let mut events = Vec::new();
    for (counter, code) in wanted {
        let trigger = counter.trigger();
        if let Some(trigger) = trigger.filter(|trigger| code == Code::User && trigger.is_in_kernel()) {
            return Err(Error::OnlyInKernel(trigger.name().into()));
        }
        let may_be_rare = trigger.is_some_and(|trigger| !trigger.is_hardware());
        let pace = match options.period {
            Some(period) => Pace::Period(period.max(1)),
            None if may_be_rare && options.each_if_rare => Pace::Period(1),
            None => Pace::Frequency(frequency_hz),
        };
        let part = Part { tells: events.is_empty(), has_id: several, ..Part::alone(&counter, pace) };
        let (stack_copy, count_lost) = (options.stack_copy, abilities.count_lost);
        let copier = None;
        events.push(Sampling { counter, code, pace, stack_copy, inherit: false, count_lost, part, copier });
    }
    // One layout for all.
    let says_period = events.iter().all(|event| event.part.says_period);
    events.iter_mut().for_each(|event| event.part.says_period = says_period);
    Ok((events, frequency_hz, limits))
}

/// Whom to attach events to. `pids`: the command's, or the processes to record.
pub(crate) fn attach(
    host: &Host,
    machine: std::io::Result<()>,
    target: &Target,
    pids: &[u32],
    (sampling, limits): (&Sampling, &mut Vec<String>),
) -> Result<Attachment, Error> {
    if let Err(error) = machine {
        if matches!(target, Target::Machine | Target::Cgroup(_) | Target::Awaited(_)) {
            return Err(classify(error, Asked::Machine));
        }
        limits.push(format!(
            "events are inherited from thread to thread, which misses much of short-lived processes ({}); \
             for all of them: sudo sysctl kernel.perf_event_paranoid=0, or run as root",
            paranoid(host)
        ));
        return Ok(Attachment::Processes(pids.to_vec()));
    }
    if let Target::Cgroup(path) = target {
        return Cgroup::find(path).map(Attachment::Cgroup).map_err(Error::Cgroup);
    }
    let Target::Command(_) = target else { return Ok(Attachment::Everyone) };
    match cgroup_of(pids, host, sampling) {
        Ok(cgroup) => Ok(Attachment::Cgroup(cgroup)),
        Err(error) => {
            limits.push(format!(
                "the whole machine is sampled and sorted out while recording, as no cgroup could be made: {error}"
            ));
            Ok(Attachment::Everyone)
        }
    }
}

fn cgroup_of(pids: &[u32], host: &Host, sampling: &Sampling) -> std::io::Result<Cgroup> {
    let cgroup = Cgroup::create()?;
    // A kernel may have cgroups and yet not count by them.
    let cpu = host.cpus.first().copied().unwrap_or(0);
    Event::open(&sampling.attr(), Whom::Cgroup(cgroup.as_fd()), cpu)?;
    pids.iter().try_for_each(|&pid| cgroup.add(pid))?;
    Ok(cgroup)
}

fn paranoid(host: &Host) -> String {
    match host.paranoid {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => "kernel.perf_event_paranoid is not readable".into(),
    }
}

/// What the attachment is called in a profile.
pub(crate) fn scope(attachment: &Attachment, target: &Target) -> Scope {
    match (attachment, target) {
        (Attachment::Cgroup(_), _) => Scope::Cgroup,
        (Attachment::Everyone, Target::Machine) => Scope::System,
        (Attachment::Everyone, _) => Scope::FilteredSystem,
        (Attachment::Processes(_), _) => Scope::Inherited,
    }
}
