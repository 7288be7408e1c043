//! The sentence that explains why samples represent less, or more, of the target's CPU time than they should.
//!
//! Elsewhere: the coverage that readers of a recording see (analyze).

use plumb_process::procfs::MachineTimes;
use plumb_process::usage::CpuTime;
use plumb_profile::{COVERAGE_GAP, Meta, Scope};

use super::Recorder;
use crate::account::Account;
use crate::attr::Code;

/// Coverage in percent that needs no explanation.
const FAIR: std::ops::RangeInclusive<f64> = 95.0..=105.0;
/// Fewest expected samples for a meaningful coverage.
const ENOUGH: f64 = 100.0;
/// Smallest fraction of the missing samples that a cause has to explain.
const EXPLAINS: f64 = 0.2;

impl Recorder {
    /// The reason for low or high coverage; `None`: normal or unknown.
    pub(super) fn coverage_gap(&self, target_cpu: Option<CpuTime>, meta: &Meta) -> Option<String> {
        let hz = f64::from(meta.frequency_hz?);
        let clock = self.sampled.iter().find(|one| one.is_clock())?;
        let time = match clock.events.sampling().code {
            Code::All => target_cpu?.total(),
            Code::User => target_cpu?.user,
            Code::Kernel => target_cpu?.system,
        };
        let asked = time.as_secs_f64() * hz;
        let (all, samples) = (self.statistics().samples, &self.profile().samples);
        let samples = match self.sampled.len() {
            1 => all,
            // With several events, the number is unknown once a part was removed from memory.
            _ if samples.len() as u64 != all => return None,
            _ => samples.iter().filter(|sample| sample.event == clock.id).count() as u64,
        };
        let percent = samples as f64 * 100.0 / asked;
        if asked < ENOUGH || FAIR.contains(&percent) {
            return None;
        }
        let machine = MachineTimes::now().since(self.began.machine);
        let mut causes = if percent > 100.0 {
            self.excesses(meta)
        } else {
            self.losses((asked - samples as f64, asked), hz, (machine, meta))
        };
        if clock.events.sampling().code != Code::All {
            causes.push("user and kernel time are told apart by the kernel's tick, which is rough".into());
        }
        if causes.is_empty() {
            causes.push(format!(
                "no cause was found: {} samples lost, the events throttled {} times, {:.2} s of the machine in interrupts, {:.2} s taken \
                 by the hypervisor",
                meta.lost_samples,
                self.statistics().throttled,
                machine.interrupts.as_secs_f64(),
                machine.stolen.as_secs_f64()
            ));
        }
        Some(format!("{COVERAGE_GAP}{percent:.0}%: {}", causes.join("; ")))
    }

    /// Causes of `missing` samples, of `asked` expected ones.
    fn losses(
        &self,
        (missing, asked): (f64, f64),
        hz: f64,
        (machine, meta): (MachineTimes, &Meta),
    ) -> Vec<String> {
        let explains = |samples: f64| samples >= EXPLAINS * missing;
        // Effects on the whole machine are attributed to the target by its share of the CPU time.
        let whole = meta.duration_ns as f64 / 1e9 * f64::from(meta.cpus) * hz;
        let of_machine = |seconds: f64| explains(seconds * hz * (asked / whole.max(1.0)).min(1.0));
        let mut causes = Vec::new();
        let others = &self.copies.blind.others;
        let others_s = others.run_ns as f64 / 1e9;
        if explains(others_s * hz) {
            causes.push(format!(
                "BPF programs of other tools ({}) ran for {others_s:.2} s, and the kernel drops samples meanwhile that a BPF program is to \
                 take; --capture perf has them",
                others.names.join(", ")
            ));
        }
        if explains(meta.lost_samples as f64) {
            causes.push(format!(
                "{} samples were lost, as their buffers were full; fewer: -F 200",
                meta.lost_samples
            ));
        }
        let throttled = self.statistics().throttled;
        if throttled > 0 {
            causes.push(format!(
                "the kernel stopped the events {throttled} times, as samples came faster than kernel.perf_event_max_sample_rate; fewer: -F 200"
            ));
        }
        let (stolen, interrupts) = (machine.stolen.as_secs_f64(), machine.interrupts.as_secs_f64());
        if of_machine(stolen) {
            causes.push(format!("the hypervisor took {stolen:.2} s of processor time from this machine"));
        }
        if of_machine(interrupts) {
            causes.push(format!(
                "processors spent {interrupts:.2} s in interrupts, some of it charged to the target while its clock could not fire"
            ));
        }
        if meta.scope == Scope::Inherited {
            causes.push("events are inherited from thread to thread, which misses short processes; as root they aren't".into());
        }
        causes
    }

    /// Causes of more samples than the accounted CPU time explains.
    fn excesses(&self, meta: &Meta) -> Vec<String> {
        match (&self.account, meta.scope) {
            (Account::Processes(_) | Account::Command(_), scope) if scope != Scope::Cgroup => {
                vec!["processes that ended between two looks at /proc, or that nobody waited for, are missing in the processor time".into()]
            }
            _ => Vec::new(),
        }
    }
}
