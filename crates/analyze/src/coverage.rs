//! How much of the target's processor time samples account for.

use plumb_profile::{Id, Profile};

/// Events that go by processor time, by perf's names without what follows a colon.
const CLOCKS: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// Whether samples of an event of this name are taken as processor time passes. Of other events (page faults, tracepoints, time
/// off the processor) their number says nothing about time on it.
pub fn is_clock(event: &str) -> bool {
    CLOCKS.contains(&event.split(':').next().unwrap_or(event))
}

/// Samples taken of those that the target's processor time should have given, in percent. `None` where that is not known, or has
/// no meaning: if the profile has samples of anything but one clock.
pub fn coverage(profile: &Profile) -> Option<f64> {
    let meta = &profile.meta;
    let expected = meta.target_cpu_ns? as f64 / 1e9 * f64::from(meta.frequency_hz?);
    let mut sampled = vec![false; profile.events.len()];
    profile.samples.iter().for_each(|sample| sampled[sample.event.index()] = true);
    let mut events = profile.events.iter().filter(|(id, _)| sampled[id.index()] || profile.events.len() == 1);
    let (_, only) = events.next().filter(|_| events.next().is_none())?;
    let is_clock = is_clock(profile.strings.get(only.name));
    (is_clock && expected > 0.0).then(|| profile.samples.len() as f64 * 100.0 / expected)
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
            profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack: None, weight: 1 });
        }
        profile.meta.target_cpu_ns = Some(1_000_000_000);
        profile.meta.frequency_hz = Some(100);
        profile
    }

    #[test]
    fn only_clocks_cover_processor_time() {
        assert_eq!(coverage(&profile("cpu-clock")), Some(50.0));
        assert_eq!(coverage(&profile("cycles:u")), Some(50.0));
        for other in ["page-faults", "off-cpu", "syscalls:sys_enter_brk"] {
            assert_eq!(coverage(&profile(other)), None, "{other}");
        }
    }

    #[test]
    fn several_events_have_no_coverage() {
        let mut both = profile("cpu-clock");
        let name = both.strings.add("page-faults");
        let event = both.events.push(Event { name, unit: name });
        assert_eq!(coverage(&both), Some(50.0), "the other one was never sampled");
        let first = both.samples.get(0).expect("there are samples");
        both.samples.push(Sample { event, ..first });
        assert_eq!(coverage(&both), None);
    }
}
