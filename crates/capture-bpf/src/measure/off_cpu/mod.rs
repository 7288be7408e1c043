//! Off-CPU times of threads: the programs at the scheduler's tracepoints (bpf/offcpu.h), and their state.
//!
//! Elsewhere: the stacks and times that they send and count, which are handled like all messages and counts.

mod threads;

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::{Ebpf, EbpfLoader};
use plumb_capture_api::{
    Accumulation, FallbackEvents, Measure, MeasuredEvent, OffThread, TimeOff, Unmeasured,
};

use super::Measurement;
use crate::loader::Programs;
use crate::object::{Machine, Watch, each_task, sum, take, take_descriptor};
use crate::refusal::LoadError;
use crate::wire::{self, OFF_LOST, OFF_LOST_NS, OFF_SHORT, OFF_SHORT_NS, Off, PACE_BITS, Pace};

/// The tracepoint at which threads are switched out.
const SWITCH: Watch = ("on_switch", "sched_switch", "btf_trace_sched_switch");
/// The tracepoint at which threads are back: Linux 6.15 and newer.
const SWITCHED: Watch = ("on_switched", "sched_exit_tp", "btf_trace_sched_exit_tp");
/// Replaces the two above where the second does not exist.
const SWITCH_ALONE: Watch = ("on_switch_alone", SWITCH.1, SWITCH.2);
/// The tracepoint at which threads are woken.
const WAKEUP: Watch = ("on_wakeup", "sched_wakeup", "btf_trace_sched_wakeup");
/// The program that is run for each thread.
const THREADS: &str = "on_thread";
/// All tracepoints.
pub(super) const WATCHES: [Watch; 3] = [WAKEUP, SWITCH, SWITCHED];

// SAFETY (all): structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Off {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Pace {}
}

/// Options for measuring off-CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// Times whose blocked part and run-queue wait are both shorter than this, in nanoseconds, are only summed up.
    pub min_ns: u64,
    /// Approximate limit for stacks per second and CPU.
    pub stacks_per_second: u32,
    /// Whether stacks are unwound in the kernel. Otherwise each is copied.
    pub walks: bool,
    /// Whether stacks may be taken when threads come back, on kernels with that tracepoint (Linux 6.15 and newer): then each stack has a
    /// known time. Otherwise they are taken when threads leave, and times beyond [`OffCpu::stacks_per_second`] have no stack.
    pub looks_back: bool,
}

impl OffCpu {
    pub(super) fn settings(&self) -> Settings {
        let most = (u64::from(self.stacks_per_second) << PACE_BITS) / 1_000_000_000;
        let most_stacks = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Settings { min_ns: self.min_ns, most_stacks, walks: self.walks.into() }
    }
}

/// Constants in the programs.
#[derive(Default)]
pub(super) struct Settings {
    min_ns: u64,
    most_stacks: u32,
    walks: u32,
}

impl Settings {
    pub(super) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("min_ns", &self.min_ns, true);
        loader.override_global("most_stacks", &self.most_stacks, true);
        loader.override_global("walks", &self.walks, true);
    }
}

/// The loaded programs, and their maps.
pub(crate) struct Switches {
    off: HashMap<MapData, u32, Off>,
    paces: PerCpuArray<MapData, Pace>,
    copiers: OwnedFd,
    looks_back: bool,
    /// The reason why threads off the CPU can't be listed, if so.
    threads: Result<(), LoadError>,
}

impl Switches {
    /// Loads the programs and attaches them. They measure nothing until they are switched on.
    pub fn load(machine: &Machine, bpf: &mut Ebpf, looks_back: bool) -> Result<Self, LoadError> {
        let looks_back = looks_back && machine.watch(bpf, SWITCHED).is_ok();
        if looks_back {
            machine.watch(bpf, SWITCH)?;
        } else {
            machine.watch(bpf, SWITCH_ALONE)?;
            machine.watch(bpf, WAKEUP)?;
        }
        // Loading alone does not show that the iterator's file can be opened.
        let threads = machine.load_each_task(bpf, THREADS).and_then(|_| each_task(bpf, THREADS).map(drop));
        Ok(Self {
            off: take(bpf, "off")?,
            paces: take(bpf, "paces")?,
            copiers: take_descriptor(bpf, "copiers")?,
            looks_back,
            threads,
        })
    }

    /// Whether stacks are taken when threads come back.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The map of the events that write copies.
    pub fn copiers(&self) -> io::Result<OwnedFd> {
        self.copiers.try_clone()
    }

    /// The reason why threads off the CPU can't be seen before they run, if so.
    pub fn without_threads(&self) -> Option<&LoadError> {
        self.threads.as_ref().err()
    }

    /// Threads off the CPU that were not reported, with their stacks: those off since before the first call, and those whose stack was not unwound
    /// when they left. Times of all others are counted up to now. `bpf`: the object with these programs.
    pub fn threads(&self, bpf: &mut Ebpf) -> io::Result<Vec<OffThread>> {
        self.threads.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
        let mut file = each_task(bpf, THREADS).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes.chunks_exact(size_of::<wire::OffThread>()).filter_map(threads::read).collect())
    }

    /// Threads that are off the CPU.
    pub fn pending(&self, now_ns: u64) -> Vec<TimeOff> {
        let all = self.off.iter().filter_map(Result::ok);
        let times = all.filter(|(_, off)| off.out_ns != 0).map(|(tid, off)| {
            let woken = if off.woken_ns == 0 { now_ns } else { off.woken_ns };
            TimeOff {
                out_ns: off.out_ns,
                blocked_ns: woken.saturating_sub(off.out_ns),
                waited_ns: now_ns.saturating_sub(woken),
                pid: off.pid,
                tid,
                key: off.key,
            }
        });
        times.collect()
    }

    /// Times that are in no message. `counters`: those of the programs.
    pub fn unmeasured(&self, counters: &PerCpuArray<MapData, u64>) -> Unmeasured {
        let counter = |index| sum(counters, index);
        let paces = self.paces.get(&0, 0);
        Unmeasured {
            short: counter(OFF_SHORT),
            short_ns: counter(OFF_SHORT_NS),
            lost: counter(OFF_LOST),
            lost_ns: counter(OFF_LOST_NS),
            rest_ns: paces.iter().flat_map(|paces| paces.iter()).flat_map(|pace| pace.sums).sum(),
        }
    }
}

/// The events: off-CPU time up to the wake-up, then run-queue wait.
const EVENTS: [MeasuredEvent; 2] =
    [MeasuredEvent { name: "off-cpu", unit: "ns" }, MeasuredEvent { name: "run-queue", unit: "ns" }];

impl Programs {
    fn switches(&self) -> Option<&Switches> {
        if let Some(Measurement::OffCpu(switches)) = &self.measurement { Some(switches) } else { None }
    }

    /// The reason why threads off the CPU at the start of a recording can't be seen before they run, if so.
    pub fn without_threads(&self) -> Option<&LoadError> {
        self.switches()?.without_threads()
    }

    /// Whether stacks are taken when threads come back.
    pub(crate) fn looks_back(&self) -> bool {
        self.switches().is_some_and(Switches::looks_back)
    }
}

impl Measure for Programs {
    fn events(&self) -> &'static [MeasuredEvent] {
        &EVENTS
    }

    fn accumulation(&self) -> Accumulation {
        Accumulation::Intervals
    }

    fn copiers(&mut self) -> io::Result<FallbackEvents> {
        self.followed.look_at_switches(true)?;
        let switches = self.switches().ok_or_else(|| io::Error::other("no switches are watched"))?;
        Ok(FallbackEvents { map: switches.copiers()?, way_in: None })
    }

    fn stop(&mut self) -> io::Result<()> {
        self.followed.look_at_switches(false)
    }

    fn off_now(&mut self, ends: bool) -> io::Result<Vec<OffThread>> {
        if ends {
            self.followed.ends()?;
        }
        let Self { measurement: Some(Measurement::OffCpu(switches)), bpf, .. } = self else {
            return Ok(Vec::new());
        };
        switches.threads(bpf)
    }

    fn pending(&self, now_ns: u64) -> Vec<TimeOff> {
        self.switches().map_or(Vec::new(), |switches| switches.pending(now_ns))
    }

    fn unmeasured(&self) -> Unmeasured {
        self.switches().map_or(Unmeasured::default(), |switches| switches.unmeasured(&self.counters))
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::Event;

    use super::EVENTS;

    #[test]
    fn the_events_have_the_names_of_recordings() {
        assert_eq!(EVENTS.map(|event| event.name), Event::WAITS);
    }
}
