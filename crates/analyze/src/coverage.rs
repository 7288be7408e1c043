//! Coverage: the share of the target's CPU time that samples account for.

use plumb_profile::{Event, EventId, Id, Profile};

use crate::filter::Filter;

/// Events that measure CPU time, by perf's names without modifiers.
const CLOCKS: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// Whether an event of this name is sampled as CPU time passes. For other events (page faults, tracepoints, off-CPU
/// time) the number of samples says nothing about CPU time.
pub fn is_clock(event: &str) -> bool {
    CLOCKS.contains(&event.split(':').next().unwrap_or(event))
}

/// Whether an event's samples are weighted by the CPU time that passed, in nanoseconds.
pub fn is_cpu_time(profile: &Profile, event: &Event) -> bool {
    is_clock(profile.strings.get(event.name)) && profile.strings.get(event.unit) == "ns"
}

/// Whether a recording has only off-CPU time.
pub fn is_off_cpu(profile: &Profile) -> bool {
    profile.events.rows().first().is_some_and(|event| profile.strings.get(event.name) == Event::OFF_CPU)
}

/// Event names in formats without event types: folded stacks, speedscope's, pprof's without a specific type.
const UNTOLD: [&str; 4] = ["samples", "sample", "weight", "time"];

/// Whether it is unknown what an event of this name counts: CPU time, elapsed time, or another quantity.
pub fn is_untold(event: &str) -> bool {
    UNTOLD.contains(&event)
}

/// Returns the samples taken in percent of those due for the target's CPU time. `None` if it is not known, or
/// meaningless: if the filter keeps only a part, its event is not a clock, or the profile has samples of several clocks.
pub fn coverage(profile: &Profile, filter: &Filter) -> Option<f64> {
    let (meta, event) = (&profile.meta, filter.event);
    if !filter.is_whole() {
        return None;
    }
    let expected = meta.target_cpu_ns? as f64 / 1e9 * f64::from(meta.frequency_hz?);
    let mut sampled = vec![0_u64; profile.events.len()];
    profile.samples.iter().for_each(|sample| sampled[sample.event.index()] += 1);
    let is_clock = |id: EventId| is_clock(profile.strings.get(profile.events[id].name));
    let clocks: Vec<EventId> = profile.events.iter().map(|(id, _)| id).filter(|&id| is_clock(id)).collect();
    let mut clocks_sampled = clocks.iter().filter(|id| sampled[id.index()] > 0);
    let &clock = clocks_sampled.next().or_else(|| clocks.first())?;
    let is_asked_for = event.is_none_or(|event| event == clock) && clocks_sampled.next().is_none();
    (is_asked_for && expected > 0.0).then(|| sampled[clock.index()] as f64 * 100.0 / expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{Event, Process, Sample, Thread};

    fn profile(event: &str) -> Profile {
        let mut profile = Profile::default();
        let empty = profile.strings.empty();
        let name = profile.strings.add(event);
        let event = profile.events.push(Event { name, unit: name });
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
        for _ in 0..50 {
            profile.samples.push(Sample {
                time_ns: 0,
                thread,
                cpu: 0,
                event,
                stack: None,
                syscall: None,
                weight: 1,
            });
        }
        profile.meta.target_cpu_ns = Some(1_000_000_000);
        profile.meta.frequency_hz = Some(100);
        profile
    }

    #[test]
    fn only_clocks_cover_processor_time() {
        assert_eq!(coverage(&profile("cpu-clock"), &Filter::default()), Some(50.0));
        assert_eq!(coverage(&profile("cycles:u"), &Filter::default()), Some(50.0));
        for other in ["page-faults", "off-cpu", "syscalls:sys_enter_brk"] {
            assert_eq!(coverage(&profile(other), &Filter::default()), None, "{other}");
        }
    }

    #[test]
    fn of_several_events_the_clock_has_a_coverage() {
        let mut both = profile("cpu-clock");
        let add = |both: &mut Profile, name: &str| {
            let name = both.strings.add(name);
            let event = both.events.push(Event { name, unit: name });
            let first = both.samples.get(0).expect("there are samples");
            both.samples.push(Sample { event, ..first });
            event
        };
        let clock = both.samples.get(0).map(|sample| sample.event);
        let faults = add(&mut both, "page-faults");
        let of = |event| Filter { event, ..Filter::default() };
        assert_eq!(coverage(&both, &Filter::default()), Some(50.0));
        assert_eq!(coverage(&both, &of(clock)), Some(50.0));
        assert_eq!(coverage(&both, &of(Some(faults))), None);
        add(&mut both, "cycles");
        assert_eq!(coverage(&both, &of(clock)), None, "of two clocks it is not known which is which");
    }
}
