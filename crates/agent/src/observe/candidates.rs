//! Selects the services that spend much of their CPU time in the kernel.
//!
//! Invariant: memory is bounded: a service is forgotten within minutes of its last sample.

use std::collections::{BTreeMap, HashMap};

use plumb_profile::{FrameKind, Profile, Sample};

use crate::labels::{Attributes, Resources};
use crate::totals::Quantity;

/// Most candidates at a time: the services with the most kernel time. Each is traced for seconds in minutes, so that most of them have a turn.
const MOST: usize = 50;
/// Smallest share of kernel time in a candidate's CPU time.
const SHARE: f64 = 0.2;
/// Fewest samples of a candidate.
const SAMPLES: f64 = 3.0;
/// Number of windows in the decaying sums: at the usual sample rate, and at most, at a low rate with fewer samples per window.
const WINDOWS: (f64, f64) = (4.0, 20.0);
/// The usual sample rate, in samples a second.
const USUAL_HZ: f64 = 97.0;
/// Most processes of a service to trace: those with the most kernel time.
const PROCESSES: usize = 8;
/// Service name of the kernel's own threads, which make no system calls.
const KERNEL: &str = "kernel";

/// A service to observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub attributes: Attributes,
    /// Processes in the last samples; they may have ended.
    pub pids: Vec<u32>,
    /// One of them was sampled in two windows. Only for such a process can an interval be reported.
    pub is_steady: bool,
}

/// Exponentially decaying sums of a service.
#[derive(Clone, Debug, Default)]
struct Sums {
    samples: f64,
    all_ns: f64,
    kernel_ns: f64,
    pids: BTreeMap<u32, u64>,
    is_steady: bool,
}

/// Services that were sampled lately.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    services: HashMap<Attributes, Sums>,
}

impl Candidates {
    /// Adds a window sampled at `frequency_hz`. Returns the current candidates, most kernel time first.
    pub fn of_window(
        &mut self,
        profile: &Profile,
        resources: &Resources,
        frequency_hz: u32,
    ) -> Vec<Candidate> {
        let windows = WINDOWS.0 * USUAL_HZ / f64::from(frequency_hz.max(1));
        // Fraction of the sums that is carried over to the next window.
        let decay = 1.0 - 1.0 / windows.clamp(WINDOWS.0, WINDOWS.1);
        for sums in self.services.values_mut() {
            sums.samples *= decay;
            sums.all_ns *= decay;
            sums.kernel_ns *= decay;
        }
        self.services.retain(|_, sums| sums.samples >= 0.5);
        let mut new: HashMap<usize, Sums> = HashMap::new();
        let is_time = |sample: &Sample| Quantity::of_event(profile, sample.event) == Quantity::CpuTime;
        for sample in profile.samples.iter().filter(is_time) {
            let process = profile.threads[sample.thread].process;
            let pid = profile.processes[process].pid;
            let Some(&place) = resources.of_process.get(&process).filter(|_| pid != std::process::id())
            else {
                continue;
            };
            let leaf = profile.frames_of(sample.stack).next();
            let is_kernel = leaf.is_some_and(|frame| profile.frames[frame].kind == FrameKind::Kernel);
            let kernel_ns = if is_kernel { sample.weight } else { 0 };
            let sums = new.entry(place).or_default();
            sums.samples += 1.0;
            sums.all_ns += sample.weight as f64;
            sums.kernel_ns += kernel_ns as f64;
            *sums.pids.entry(pid).or_default() += kernel_ns;
        }
        for (place, sums) in new {
            let known = self.services.entry(resources.attributes[place].clone()).or_default();
            known.samples += sums.samples;
            known.all_ns += sums.all_ns;
            known.kernel_ns += sums.kernel_ns;
            known.is_steady = known.pids.keys().any(|pid| sums.pids.contains_key(pid));
            known.pids = sums.pids;
        }
        self.stand_out()
    }

    fn stand_out(&self) -> Vec<Candidate> {
        let is_kernel =
            |attributes: &Attributes| attributes.get("service.name").is_some_and(|name| name == KERNEL);
        let mut found: Vec<_> = self
            .services
            .iter()
            .filter(|(attributes, _)| !is_kernel(attributes))
            .filter(|(_, sums)| sums.samples >= SAMPLES && sums.kernel_ns > SHARE * sums.all_ns)
            .collect();
        found.sort_by(|(_, one), (_, other)| other.kernel_ns.total_cmp(&one.kernel_ns));
        found.truncate(MOST);
        let candidate = |(attributes, sums): (&Attributes, &Sums)| {
            let mut pids: Vec<_> = sums.pids.iter().map(|(&pid, &ns)| (std::cmp::Reverse(ns), pid)).collect();
            pids.sort_unstable();
            let pids = pids.into_iter().take(PROCESSES).map(|(_, pid)| pid).collect();
            Candidate { attributes: attributes.clone(), pids, is_steady: sums.is_steady }
        };
        found.into_iter().map(candidate).collect()
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Address, Event, Found, Frame, Process, Thread};

    use super::*;

    /// A window of services, each by name with its number of samples in user code and in the kernel.
    fn window(services: &[(&str, u32, u32)]) -> (Profile, Resources) {
        let (mut profile, mut resources) = (Profile::default(), Resources::default());
        let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
        let event = profile.events.push(Event { name, unit });
        let empty = profile.strings.empty();
        for (place, &(name, user, kernel)) in services.iter().enumerate() {
            let pid = 1000 + place as u32;
            let process = profile.processes.push(Process { pid, ppid: 1, exe: empty });
            let thread = profile.threads.push(Thread { process, tid: pid, comm: empty });
            resources.attributes.push([("service.name".to_owned(), name.to_owned())].into());
            resources.of_process.insert(process, place);
            for (kind, count) in [(FrameKind::User, user), (FrameKind::Kernel, kernel)] {
                let frame =
                    Frame { kind, dso: None, address: Address(1), is_return: false, found: Found::Sampled };
                let frame = profile.frames.add(frame);
                let stack = profile.add_stack(&[frame]);
                for time_ns in 0..u64::from(count) {
                    profile.samples.push(Sample {
                        time_ns,
                        thread,
                        cpu: 0,
                        event,
                        stack,
                        syscall: None,
                        weight: 10,
                    });
                }
            }
        }
        (profile, resources)
    }

    #[test]
    fn services_stand_out_by_kernel_time() {
        let services =
            [("busy", 900, 100), ("reader", 1, 9), ("kernel", 0, 50), ("scanner", 10, 40), ("rare", 0, 2)];
        let (profile, resources) = window(&services);
        let mut candidates = Candidates::default();
        let names = |found: &[Candidate]| -> Vec<String> {
            found.iter().map(|one| one.attributes["service.name"].clone()).collect()
        };
        let found = candidates.of_window(&profile, &resources, 97);
        assert_eq!(names(&found), ["scanner", "reader"]);
        assert_eq!((&*found[1].pids, found[1].is_steady), (&[1001][..], false));
        // Too rare in one window, but not in two.
        let found = candidates.of_window(&profile, &resources, 97);
        assert_eq!(names(&found), ["scanner", "reader", "rare"]);
        assert!(found[1].is_steady, "its process goes on");
        // A service without further samples is forgotten.
        let (profile, resources) = window(&[]);
        (0..30).for_each(|_| drop(candidates.of_window(&profile, &resources, 97)));
        assert!(candidates.services.is_empty());
    }

    #[test]
    fn at_a_low_rate_a_service_stands_out_after_more_windows() {
        let mut candidates = Candidates::default();
        let (some, resources) = window(&[("reader", 0, 1)]);
        let (none, empty) = window(&[]);
        // One sample a minute, which is one in four windows.
        let mut found = Vec::new();
        for _ in 0..4 {
            found = candidates.of_window(&some, &resources, 5);
            (0..3).for_each(|_| drop(candidates.of_window(&none, &empty, 5)));
        }
        assert_eq!(found.len(), 1);
        let mut candidates = Candidates::default();
        for _ in 0..40 {
            assert_eq!(candidates.of_window(&some, &resources, 97), []);
            (0..3).for_each(|_| drop(candidates.of_window(&none, &empty, 97)));
        }
    }
}
