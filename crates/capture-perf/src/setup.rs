//! Turns options into a possible setup: counter, frequency, code, and the attachment of events.
//!
//! Order of preference: events on each CPU restricted to a cgroup of the target; otherwise on each CPU, filtered
//! while recording; otherwise inherited by the target's threads, which misses much of short-lived processes, as the
//! kernel moves the counters of equal contexts between tasks instead of switching them.

use std::os::fd::AsFd;

use plumb_capture_api::SamplingRate;
use plumb_process::Host;
use plumb_profile::{EventId, Scope};
use plumb_target::{Cgroup, Target, TargetError};

use crate::attr::{Code, Counter, Part, Sampling};
use crate::error::{Asked, Error};
use crate::events::{Attachment, classify};
use crate::options::{EventSpec, SamplingOptions};
use crate::period::{PeriodKeeper, cycles_per_ns};
use crate::probe::{Abilities, count_events_of};
use crate::sys::perf::{Event, Whom};

/// The setup of a recording, limited to what this machine and user allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The events, in the order of the options; at least one.
    pub events: Vec<SampledEvent>,
    /// Samples per second of CPU time; for events that are not clocks, the maximum per second.
    pub frequency_hz: u32,
    /// The tasks that the events are attached to.
    pub scope: Scope,
    /// Differences from the requested setup: one sentence each, with what would allow more.
    pub limits: Vec<String>,
}

impl Setup {
    /// Notes the rate of a frequent event, and says once that it is.
    pub(crate) fn note_frequent(&mut self, index: usize, sampling: &Sampling) {
        let (hz, name) = (self.frequency_hz, sampling.counter.name());
        let text = format!(
            "{name} is frequent: each single one is a sample only at first, then there are about {hz} a second, \
             which stand for several each; to sample each: -c 1"
        );
        if !self.limits.contains(&text) {
            self.limits.push(text);
        }
        self.events[index].pace = sampling.pace;
    }
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledEvent {
    /// The event's ID in the profile.
    pub id: EventId,
    /// The event that triggers samples.
    pub counter: Counter,
    /// The code that is sampled.
    pub code: Code,
    /// The sampling rate.
    pub pace: SamplingRate,
}

/// The possible part of the requested setup.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The events, in order.
    pub events: Vec<Sampling>,
    /// Samples per second, also for a recording that doesn't use it (yet).
    pub frequency_hz: u32,
    /// The CPU's speed, measured if a hardware counter is among the events.
    pub cycles_per_ns: f64,
    /// [`Setup::limits`].
    pub limits: Vec<String>,
}

/// Chooses counters, code and frequency within what is allowed.
pub(crate) fn choose(host: &Host, abilities: Abilities, options: &SamplingOptions) -> Result<Choice, Error> {
    let mut limits = Vec::new();
    abilities.own.map_err(|error| classify(error, Asked::Own))?;
    let counter = options.counter.clone().unwrap_or(Counter::CpuClock);
    let mut wanted = vec![EventSpec { counter, code: options.code, period: None, is_copied: false }];
    wanted.extend(options.also.iter().cloned());
    if let (true, Err(error)) = (wanted.iter().any(|one| one.code != Code::User), abilities.kernel) {
        if wanted.iter().any(|one| one.code == Code::Kernel) {
            return Err(classify(error, Asked::Kernel));
        }
        wanted.iter_mut().for_each(|one| one.code = Code::User);
        limits.push(format!(
            "user code only: the kernel is hidden ({}); to see it: sudo sysctl kernel.perf_event_paranoid=1",
            paranoid(host)
        ));
    }
    let frequency_hz = allowed_frequency(host, options.frequency_hz, &mut limits);
    let several = wanted.len() > 1;
    let is_hardware = wanted.iter().any(|one| one.counter.is_hardware());
    let cycles_per_ns = if is_hardware { cycles_per_ns(&host.cpus) } else { 0.0 };
    let mut events = Vec::new();
    for EventSpec { counter, code, period, is_copied } in wanted {
        let trigger = counter.trigger();
        if let Some(trigger) = trigger.filter(|trigger| code == Code::User && trigger.is_in_kernel()) {
            return Err(Error::OnlyInKernel(trigger.name().into()));
        }
        limits.extend(trigger.and_then(|trigger| trigger.cost()));
        let may_be_rare = trigger.is_some_and(|trigger| !trigger.is_hardware());
        let pace = match period.or(options.period) {
            Some(period) => SamplingRate::Period(period.max(1)),
            None if may_be_rare && options.each_if_rare => SamplingRate::Period(1),
            None => SamplingRate::Frequency(frequency_hz),
        };
        let part = Part { tells: events.is_empty(), has_id: several, ..Part::alone(&counter, pace) };
        let (stack_copy, count_lost) = (options.stack_copy, abilities.count_lost);
        let period = PeriodKeeper::new(&counter, frequency_hz, cycles_per_ns).period();
        let (inherit, copier) = (false, None);
        let one = Sampling {
            counter,
            code,
            pace,
            period,
            stack_copy,
            is_copied,
            inherit,
            count_lost,
            part,
            copier,
        };
        events.push(one);
    }
    // All events need the same layout.
    let says_period = events.iter().all(|event| event.part.says_period);
    events.iter_mut().for_each(|event| event.part.says_period = says_period);
    Ok(Choice { events, frequency_hz, cycles_per_ns, limits })
}

/// The allowed frequency for the requested one.
fn allowed_frequency(host: &Host, asked_hz: u32, limits: &mut Vec<String>) -> u32 {
    let asked_hz = asked_hz.max(1);
    let most = host.max_sample_rate.filter(|&limit| limit > 0).map(unthrottled);
    let Some(most) = most.filter(|&most| most < asked_hz) else { return asked_hz };
    limits.push(format!(
        "{most} samples per second instead of {asked_hz}: the kernel's limit; to raise it: \
         sudo sysctl kernel.perf_event_max_sample_rate={}",
        asked_hz.saturating_mul(2)
    ));
    most
}

/// The highest rate at which the kernel drops no sample, for a given limit. The kernel counts the samples in each tick, and the sample that reaches
/// the limit's share of a tick stops the event until the next tick (`__perf_event_account_interrupt`): at a limit of 500
/// a quarter of the samples of 500 Hz is missing, at 450 Hz a sixth. So one sample per tick is kept free.
fn unthrottled(limit_hz: u32) -> u32 {
    /// CONFIG_HZ of most distributions. Where it is 1000, the margin is larger than necessary.
    const TICK_HZ: u32 = 250;
    if limit_hz >= 4 * TICK_HZ { limit_hz - TICK_HZ } else { (limit_hz / 2).max(1) }
}

/// Chooses what to attach events to. `pids`: the command's, or the processes to record.
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
            "much of short-lived processes is missed: their events are inherited from thread to thread ({}); \
             to record them completely: sudo sysctl kernel.perf_event_paranoid=0, or run as root",
            paranoid(host)
        ));
        return Ok(Attachment::Processes(pids.to_vec()));
    }
    let cpu = host.cpus.first().copied().unwrap_or(0);
    if let Target::Cgroup(path) = target {
        let cgroup = Cgroup::find(path).map_err(TargetError::Cgroup)?;
        // If it fails, opening the events fails too, with the reason.
        let _ = count_events_of(&cgroup, cpu);
        return Ok(Attachment::Cgroup(cgroup));
    }
    let Target::Command(_) = target else { return Ok(Attachment::Everyone) };
    match cgroup_of(pids, cpu, sampling) {
        Ok(cgroup) => Ok(Attachment::Cgroup(cgroup)),
        Err(error) => {
            limits.push(format!(
                "the whole machine is sampled and filtered while recording, because no cgroup could be created for the command: {error}"
            ));
            Ok(Attachment::Everyone)
        }
    }
}

fn cgroup_of(pids: &[u32], cpu: u32, sampling: &Sampling) -> std::io::Result<Cgroup> {
    let cgroup = Cgroup::create()?;
    count_events_of(&cgroup, cpu)?;
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

/// The attachment's name in a profile.
pub(crate) fn scope(attachment: &Attachment, target: &Target) -> Scope {
    match (attachment, target) {
        (Attachment::Cgroup(_), _) => Scope::Cgroup,
        (Attachment::Everyone, Target::Machine) => Scope::System,
        (Attachment::Everyone, _) => Scope::FilteredSystem,
        (Attachment::Processes(_), _) => Scope::Inherited,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;
    use crate::trigger::Named;

    /// A machine on which everything may be sampled.
    fn able() -> Abilities {
        let cgroup = Err(io::ErrorKind::NotFound.into());
        Abilities { own: Ok(()), kernel: Ok(()), machine: Ok(()), cgroup, count_lost: true }
    }

    fn chosen(event: Option<&str>, frequency_hz: u32, host: &Host) -> Choice {
        let counter = event.map(|event| match Named::parse(event).expect("it has a name") {
            Named::CpuClock(_) => Counter::CpuClock,
            Named::Cycles(_) => Counter::Cycles,
            Named::Trigger(trigger, _) => Counter::Trigger(Arc::new(trigger)),
            Named::Function { .. } => panic!("{event} is a function"),
        });
        let options = SamplingOptions { counter, frequency_hz, ..SamplingOptions::default() };
        choose(host, able(), &options).expect("it can be sampled")
    }

    /// A virtual CPU and another one: the test for hardware counters is not even made.
    fn hosts() -> [Host; 2] {
        [true, false].map(|is_virtual| Host { is_virtual, cpus: vec![0, 1], ..Host::default() })
    }

    #[test]
    fn the_clock_is_the_default_with_counters_and_without() {
        for host in hosts() {
            let events = chosen(None, 999, &host).events;
            assert_eq!(events.iter().map(|one| &one.counter).collect::<Vec<_>>(), [&Counter::CpuClock]);
        }
    }

    /// See the kernel's throttling: at the limit itself it drops samples.
    #[test]
    fn a_rate_stays_below_the_kernels_limit() {
        for (limit, asked, expected) in [
            (100_000, 999, 999),
            (100_000, 100_000, 99_750),
            (1000, 999, 750),
            (500, 999, 250),
            (500, 200, 200),
        ] {
            let host = Host { max_sample_rate: Some(limit), cpus: vec![0], ..Host::default() };
            let options = SamplingOptions { frequency_hz: asked, ..SamplingOptions::default() };
            let choice = choose(&host, able(), &options).expect("it can be sampled");
            assert_eq!(choice.frequency_hz, expected, "{asked} at {limit}");
            assert_eq!(choice.limits.is_empty(), asked == expected, "{:?}", choice.limits);
        }
    }

    /// The kernel would start with an interrupt per count.
    #[test]
    fn no_hardware_counter_is_in_frequency_mode() {
        for host in hosts() {
            for event in ["cycles", "instructions", "cache-misses", "branches", "branch-misses", "ref-cycles"]
            {
                for hz in [1, 99, 999, 100_000] {
                    let choice = chosen(Some(event), hz, &host);
                    let attr = choice.events[0].attr();
                    assert_eq!(attr.freq(), 0, "{event} at {hz}");
                    let period = choice.events[0].period;
                    let most_hz = 5e9 * 8.0 / period as f64;
                    assert!(most_hz <= f64::from(hz) * 64.1, "{event} at {hz}: every {period}");
                }
            }
        }
    }

    #[test]
    fn a_counter_whose_period_is_given_has_that() {
        let host = Host { cpus: vec![0], ..Host::default() };
        let options = SamplingOptions {
            counter: Some(Counter::Cycles),
            period: Some(4_000_000),
            ..SamplingOptions::default()
        };
        let choice = choose(&host, able(), &options).expect("it can be sampled");
        assert_eq!(choice.events[0].pace, SamplingRate::Period(4_000_000));
        assert!(choice.events[0].part.says_period, "the watchdog may make it longer");
    }
}
