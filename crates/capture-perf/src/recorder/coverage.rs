//! The sentence that explains why samples represent less, or more, of the target's CPU time than they should.
//!
//! Elsewhere: the coverage that readers of a recording see (analyze).

use plumb_capture_api::SamplingRate;
use plumb_process::procfs::MachineTimes;
use plumb_process::usage::{CpuTime, monotonic_ns};
use plumb_profile::{COVERAGE_GAP, Scope};

use super::Recorder;
use crate::account::Account;
use crate::attr::Code;

/// Coverage in percent that needs no explanation.
const FAIR: std::ops::RangeInclusive<f64> = 95.0..=105.0;
/// Fewest expected samples for a meaningful coverage.
const ENOUGH: f64 = 100.0;
/// Smallest fraction of the missing samples that a cause has to explain.
const EXPLAINS: f64 = 0.2;

/// A reading of the counters from which coverage and its causes follow, or their growth between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoverageCounters {
    time_ns: u64,
    /// `None`: not known.
    samples: Option<u64>,
    lost: u64,
    throttled: u64,
    target_cpu: Option<CpuTime>,
    machine: MachineTimes,
    /// Run time of other tools' BPF programs that suppress samples.
    others_ns: u64,
}

impl CoverageCounters {
    /// Returns the growth since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            time_ns: self.time_ns.saturating_sub(before.time_ns),
            samples: self.samples.zip(before.samples).map(|(now, then)| now.saturating_sub(then)),
            lost: self.lost.saturating_sub(before.lost),
            throttled: self.throttled.saturating_sub(before.throttled),
            target_cpu: self.target_cpu.zip(before.target_cpu).map(|(now, then)| now.since(then)),
            machine: self.machine.since(before.machine),
            others_ns: self.others_ns.saturating_sub(before.others_ns),
        }
    }
}

impl Recorder {
    /// Reads the counters of coverage: all count from the start of the recording but the time and the machine's times.
    pub fn coverage_counters(&mut self) -> CoverageCounters {
        let target_cpu = self.target_cpu();
        self.coverage_counters_with(target_cpu)
    }

    pub(super) fn coverage_counters_with(&self, target_cpu: Option<CpuTime>) -> CoverageCounters {
        let (all, samples) = (self.statistics().samples, &self.profile().samples);
        let clock = self.sampled.iter().find(|one| one.is_clock());
        let samples = match (self.sampled.len(), clock) {
            (1, _) => Some(all),
            // With several events, the number is unknown once a part was removed from memory.
            (_, Some(clock)) if samples.len() as u64 == all => {
                Some(samples.iter().filter(|sample| sample.event == clock.id).count() as u64)
            }
            _ => None,
        };
        CoverageCounters {
            time_ns: monotonic_ns(),
            samples,
            lost: self.lost(),
            throttled: self.statistics().throttled,
            target_cpu,
            machine: MachineTimes::now(),
            others_ns: self.copies.blind.others.run_ns,
        }
    }

    /// The growth of these counters since the recording began.
    pub(super) fn since_began(&self, counters: CoverageCounters) -> CoverageCounters {
        counters.since(CoverageCounters {
            time_ns: self.began.monotonic_ns,
            samples: Some(0),
            target_cpu: Some(CpuTime::default()),
            machine: self.began.machine,
            ..CoverageCounters::default()
        })
    }

    /// The reason for low or high coverage over this growth of the counters; `None`: normal or unknown.
    pub fn coverage_gap(&self, growth: &CoverageCounters) -> Option<String> {
        let clock = self.sampled.iter().find(|one| one.is_clock())?;
        let SamplingRate::Frequency(hz) = clock.events.sampling().pace else { return None };
        let (hz, code) = (f64::from(hz), clock.events.sampling().code);
        let time = match code {
            Code::All => growth.target_cpu?.total(),
            Code::User => growth.target_cpu?.user,
            Code::Kernel => growth.target_cpu?.system,
        };
        let (asked, samples) = (time.as_secs_f64() * hz, growth.samples?);
        let percent = samples as f64 * 100.0 / asked;
        if asked < ENOUGH || FAIR.contains(&percent) {
            return None;
        }
        let mut causes = if percent > 100.0 {
            self.excesses()
        } else {
            self.losses((asked - samples as f64, asked), hz, growth)
        };
        if code != Code::All {
            causes.push("user and kernel time are told apart by the kernel's tick, which is rough".into());
        }
        if causes.is_empty() {
            causes.push(format!(
                "no cause was found: {} samples lost, the events throttled {} times, {:.2} s of the machine in interrupts, {:.2} s taken \
                 by the hypervisor",
                growth.lost,
                growth.throttled,
                growth.machine.interrupts.as_secs_f64(),
                growth.machine.stolen.as_secs_f64()
            ));
        }
        Some(format!("{COVERAGE_GAP}{percent:.0}%: {}", causes.join("; ")))
    }

    /// Causes of `missing` samples, of `asked` expected ones.
    fn losses(&self, (missing, asked): (f64, f64), hz: f64, growth: &CoverageCounters) -> Vec<String> {
        let explains = |samples: f64| samples >= EXPLAINS * missing;
        // Effects on the whole machine are attributed to the target by its share of the CPU time.
        let whole = growth.time_ns as f64 / 1e9 * self.host.cpus.len() as f64 * hz;
        let of_machine = |seconds: f64| explains(seconds * hz * (asked / whole.max(1.0)).min(1.0));
        let mut causes = Vec::new();
        let others_s = growth.others_ns as f64 / 1e9;
        if explains(others_s * hz) {
            causes.push(format!(
                "BPF programs of other tools ({}) ran for {others_s:.2} s, and the kernel drops samples meanwhile that a BPF program is to \
                 take; --capture perf has them",
                self.copies.blind.others.names.join(", ")
            ));
        }
        if explains(growth.lost as f64) {
            causes.push(format!(
                "{} samples were lost, as their buffers were full; fewer: -F 200",
                growth.lost
            ));
        }
        let throttled = growth.throttled;
        if throttled > 0 {
            causes.push(format!(
                "the kernel stopped the events {throttled} times, as samples came faster than kernel.perf_event_max_sample_rate; fewer: -F 200"
            ));
        }
        let (stolen, interrupts) =
            (growth.machine.stolen.as_secs_f64(), growth.machine.interrupts.as_secs_f64());
        if of_machine(stolen) {
            causes.push(format!("the hypervisor took {stolen:.2} s of processor time from this machine"));
        }
        if of_machine(interrupts) {
            causes.push(format!(
                "processors spent {interrupts:.2} s in interrupts, some of it charged to the target while its clock could not fire"
            ));
        }
        if self.setup.scope == Scope::Inherited {
            causes.push("events are inherited from thread to thread, which misses short processes; as root they aren't".into());
        }
        causes
    }

    /// Causes of more samples than the accounted CPU time explains.
    fn excesses(&self) -> Vec<String> {
        match (&self.account, self.setup.scope) {
            (Account::Processes(_) | Account::Command(_), scope) if scope != Scope::Cgroup => {
                vec!["processes that ended between two looks at /proc, or that nobody waited for, are missing in the processor time".into()]
            }
            _ => Vec::new(),
        }
    }
}
