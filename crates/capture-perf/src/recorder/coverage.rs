//! The sentence that explains why samples represent less, or more, of the target's CPU time than they should.
//!
//! Elsewhere: the coverage that readers of a recording see (analyze).

use plumb_capture_api::SamplingRate;
use plumb_process::procfs::MachineTimes;
use plumb_process::usage::CpuTime;
use plumb_profile::{COVERAGE_GAP, Scope};

use crate::attr::{Code, Sampling};

/// Coverage in percent that needs no explanation.
const FAIR: std::ops::RangeInclusive<f64> = 95.0..=105.0;
/// Fewest expected samples for a meaningful coverage.
const ENOUGH: f64 = 100.0;
/// Smallest fraction of the missing samples that a cause has to explain.
const EXPLAINS: f64 = 0.2;

/// A reading of the counters from which coverage and its causes follow, or their growth between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoverageCounters {
    pub(super) time_ns: u64,
    /// `None`: not known.
    pub(super) samples: Option<u64>,
    pub(super) lost: u64,
    pub(super) throttled: u64,
    pub(super) target_cpu: Option<CpuTime>,
    pub(super) machine: MachineTimes,
    /// Run time of other tools' BPF programs that suppress samples.
    pub(super) others_ns: u64,
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

/// The properties of a recording that coverage and its causes depend on.
pub struct CoverageRule<'r> {
    /// Of the clock; `None`: there is none, and no coverage.
    pub(super) clock: Option<&'r Sampling>,
    /// Number of CPUs of the machine.
    pub(super) cpus: usize,
    pub(super) scope: Scope,
    /// Names of other tools' programs that suppress samples.
    pub(super) other_programs: &'r [String],
    /// Whether the account of the target's CPU time may miss processes.
    pub(super) account_has_gaps: bool,
}

impl CoverageRule<'_> {
    /// The reason for low or high coverage over this growth of the counters; `None`: normal or unknown.
    pub fn gap(&self, growth: &CoverageCounters) -> Option<String> {
        let &Sampling { pace: SamplingRate::Frequency(hz), code, .. } = self.clock? else { return None };
        let hz = f64::from(hz);
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
        let whole = growth.time_ns as f64 / 1e9 * self.cpus as f64 * hz;
        let of_machine = |seconds: f64| explains(seconds * hz * (asked / whole.max(1.0)).min(1.0));
        let mut causes = Vec::new();
        let others_s = growth.others_ns as f64 / 1e9;
        if explains(others_s * hz) {
            causes.push(format!(
                "BPF programs of other tools ({}) ran for {others_s:.2} s, and the kernel drops samples meanwhile that a BPF program is to \
                 take; --capture perf has them",
                self.other_programs.join(", ")
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
        if self.scope == Scope::Inherited {
            causes.push("events are inherited from thread to thread, which misses short processes; as root they aren't".into());
        }
        causes
    }

    /// Causes of more samples than the accounted CPU time explains.
    fn excesses(&self) -> Vec<String> {
        match self.account_has_gaps && self.scope != Scope::Cgroup {
            true => vec![
                "processes that ended between two looks at /proc, or that nobody waited for, are missing in the processor time".into()
            ],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::attr::{Counter, Part};

    fn sampling(hz: u32) -> Sampling {
        let (counter, pace) = (Counter::CpuClock, SamplingRate::Frequency(hz));
        let part = Part::alone(&counter, pace);
        Sampling {
            counter,
            code: Code::All,
            pace,
            period: 1,
            stack_copy: 0,
            is_copied: false,
            inherit: false,
            count_lost: false,
            part,
            copier: None,
        }
    }

    /// Counters of one second with one second of CPU time, and this number of samples.
    fn growth(samples: u64) -> CoverageCounters {
        let user = Duration::from_secs(1);
        let target_cpu = Some(CpuTime { user, system: Duration::ZERO });
        CoverageCounters {
            time_ns: 1_000_000_000,
            samples: Some(samples),
            target_cpu,
            ..CoverageCounters::default()
        }
    }

    #[test]
    fn a_gap_has_the_causes_that_explain_enough_of_it() {
        let (clock, others) = (sampling(1000), ["tool".to_owned()]);
        let rule = CoverageRule {
            clock: Some(&clock),
            cpus: 2,
            scope: Scope::Cgroup,
            other_programs: &others,
            account_has_gaps: true,
        };
        let gap = |growth| rule.gap(&growth).unwrap_or_default();
        assert_eq!(gap(growth(960)), "", "96% need no explanation");
        assert!(gap(CoverageCounters { lost: 100, ..growth(800) }).contains("100 samples were lost"));
        assert!(
            gap(CoverageCounters { lost: 10, ..growth(800) }).contains("no cause was found: 10 samples lost")
        );
        let others = CoverageCounters { others_ns: 150_000_000, lost: 10, ..growth(800) };
        assert!(gap(others).contains("BPF programs of other tools (tool) ran for 0.15 s"));
        assert!(gap(growth(1200)).contains("120%: no cause was found"), "a cgroup's account is complete");
        let rule = CoverageRule { scope: Scope::FilteredSystem, ..rule };
        assert!(rule.gap(&growth(1200)).is_some_and(|gap| gap.contains("nobody waited for")));
        assert_eq!(CoverageRule { clock: None, ..rule }.gap(&growth(10)), None, "nothing to expect");
    }
}
