//! The end of a recording: waits for late records, and adds facts on the whole recording to the samples.

use std::fs::File;
use std::time::{Duration, Instant};

use plumb_capture_api::{SamplingRate, Unmeasured, UnwindFallbackStats};
use plumb_ingest::{EndedCgroups, Statistics};
use plumb_process::procfs::MachineTimes;
use plumb_process::usage::{CpuTime, monotonic_ns, nanoseconds, own_cpu_time};
use plumb_profile::{DsoId, Meta, Profile, Queued, Scope};
use plumb_target::{Descendants, Running};

use super::Recorder;
use super::sampled::Sampled;
use crate::attr::Code;
use crate::events::Attachment;
use crate::setup::Setup;

/// Limits for waiting for accounts of processes at the end: the time without any, and the total
/// time.
const SETTLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// A finished recording.
pub struct Recorded {
    /// The profile: addresses, not names. Its `meta` is filled in except for facts that only the caller knows.
    pub profile: Profile,
    /// Counts of samples.
    pub statistics: Statistics,
    /// The setup of the recording.
    pub setup: Setup,
    /// CPU time of the target, user and kernel separately, if known.
    pub target_cpu: Option<CpuTime>,
    /// A command that outlives its recording.
    pub running: Option<Running>,
    /// Descendants that outlive a command.
    pub left: Descendants,
    /// Counts of stacks unwound in the kernel and of others; `None`: kernel unwinding was not used.
    pub handed_over: Option<UnwindFallbackStats>,
    /// Off-CPU times that are not in the profile; `None`: they were not measured.
    pub unmeasured: Option<Unmeasured>,
    /// Files that were deleted or replaced while the target used them, held open so that symbols can be read.
    pub vanished: Vec<(DsoId, File)>,
    /// The control groups of processes that ended since the profile was last taken out, if the kernel was asked for them.
    pub cgroups: EndedCgroups,
}

impl Recorder {
    /// Reads the stacks of ongoing waits that could not be unwound at their start: the table may not have been loaded yet. Does nothing once waits
    /// are no longer measured.
    pub(super) fn look_at_waits(&mut self) {
        if let Some(unwinder) = &mut self.unwinder {
            // Waits that can't be read now are in the sum, without a stack.
            let _ = unwinder.look_at_threads(&mut self.ingest, true);
        }
    }

    /// Finishes the recording.
    pub fn finish(mut self) -> Recorded {
        self.stop();
        self.look_at_other_programs(true);
        let ended = monotonic_ns();
        self.slow_down();
        let target_cpu = self.target_cpu();
        self.ingest.processes().look_at_queues(true);
        self.read(u64::MAX);
        self.settle();
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.add_pending(&mut self.ingest, ended);
        }
        let left = self.descendants();
        let unmeasured = self.unmeasured();
        let mut meta = self.facts(ended, target_cpu);
        self.weigh();
        let running = if self.observed.exited.is_none() { self.observed.child.map(Running) } else { None };
        let lost = self.lost();
        let (vanished, cgroups) = (self.ingest.vanished(), self.ingest.processes().take_cgroups());
        let growth = self.since_began(self.coverage_counters_with(target_cpu));
        meta.warnings.extend(self.coverage_gap(&growth));
        let handed_over = self.unwinder.as_ref().map(|unwinder| unwinder.kernel().handed_over());
        let (mut profile, mut statistics) = self.ingest.finish();
        statistics.lost_samples = lost;
        meta.damaged_records = statistics.damaged_records;
        meta.warnings.extend(Some(left.to_string()).filter(|text| !text.is_empty()));
        profile.meta = meta;
        Recorded {
            profile,
            statistics,
            setup: self.setup,
            target_cpu,
            running,
            left,
            handed_over,
            unmeasured,
            vanished,
            cgroups,
        }
    }

    /// Scales the weights of samples to the kernel's counts.
    fn weigh(&mut self) {
        let is_scaled = self.counts_target_only();
        for one in &self.sampled {
            if one.events.is_taken() {
                // Only lost occurrences are in no sample, and those after the last sample of each CPU.
                let counted = self.counted(one).filter(|_| one.is_by_frequency());
                counted.iter().for_each(|&counted| self.ingest.weights().scale(one.id, 0..u64::MAX, counted));
                continue;
            }
            if !is_scaled {
                continue;
            }
            if !one.is_scaled() {
                // The weight in a sample may be the period before a change, as for a counter used as a clock.
                let counted = one.events.counted().filter(|_| one.events.sampling().counter.is_hardware());
                counted.iter().for_each(|&counted| self.ingest.weights().scale_down(one.id, counted));
                continue;
            }
            // Programs have the period of each sample, and sum samples of any time.
            let parts = if one.events.is_walked_in_kernel() { None } else { one.events.parts() };
            if let Some(parts) = parts {
                self.ingest.weights().scale_parts(one.id, &parts);
            } else if one.is_by_frequency()
                && let Some(counted) = one.events.counted()
            {
                self.ingest.weights().scale(one.id, 0..u64::MAX, counted);
            }
        }
    }

    /// Running descendants of a command that has ended itself.
    fn descendants(&self) -> Descendants {
        let Some(name) = self.observed.command.clone().filter(|_| self.observed.exited.is_some()) else {
            return Descendants::default();
        };
        let pids = match &self.ground.attachment {
            Attachment::Cgroup(cgroup) => cgroup.pids(),
            Attachment::Everyone | Attachment::Processes(_) => self.ingest.followed().collect(),
        };
        Descendants::new(name, pids).staying()
    }

    /// The facts on the recording as a whole.
    pub(super) fn facts(&self, ended_ns: u64, target_cpu: Option<CpuTime>) -> Meta {
        let mut meta = self.ingest.profile().meta.clone();
        meta.host = self.host.name.clone();
        meta.kernel = self.host.kernel.clone();
        meta.arch = std::env::consts::ARCH.into();
        meta.cpus = u32::try_from(self.host.cpus.len()).unwrap_or(u32::MAX);
        meta.start_unix_ns = self.began.unix_ns;
        meta.start_ns = self.began.monotonic_ns;
        meta.duration_ns = ended_ns.saturating_sub(self.began.monotonic_ns);
        let clock = self.sampled.iter().find(|one| one.is_clock()).unwrap_or(&self.sampled[0]);
        meta.frequency_hz = match clock.events.sampling().pace {
            SamplingRate::Frequency(hz) => Some(hz),
            SamplingRate::Period(_) => None,
        };
        meta.occurrences = self.sampled.iter().map(|one| self.occurrences_of(one)).collect();
        meta.scope = self.setup.scope;
        meta.user_only = clock.events.sampling().code == Code::User;
        meta.target_cpu_ns = target_cpu.map(CpuTime::total_ns);
        let stolen_ns = nanoseconds(MachineTimes::now().since(self.began.machine).stolen);
        let throttled_ns = self.began.throttle.as_ref().map(|throttle| nanoseconds(throttle.since()));
        let queued = self.ingest.queued(ended_ns);
        meta.queued = queued.map(|queued| Queued { stolen_ns, throttled_ns, ..queued });
        meta.recorder_cpu_ns = Some(own_cpu_time().since(self.began.own).total_ns());
        meta.lost_samples = self.lost();
        meta.damaged_records = self.ingest.statistics().damaged_records;
        meta.stack_copy_bytes = self.sampled[0].events.sampling().stack_copy;
        meta.warnings.extend(self.setup.limits.iter().cloned());
        let unknown = self.ingest.unknown_interpreters();
        meta.warnings.extend(unknown.map(|name| format!("{name} is not known: its functions are missing")));
        meta
    }

    /// Whether the events count only the target.
    pub(super) fn counts_target_only(&self) -> bool {
        match self.ground.attachment {
            Attachment::Cgroup(_) | Attachment::Processes(_) => true,
            Attachment::Everyone => self.setup.scope == Scope::System,
        }
    }

    /// Number of occurrences of an event in the target; `None` for a clock, or if unknown.
    fn occurrences_of(&self, one: &Sampled) -> Option<u64> {
        let trigger = one.events.sampling().counter.trigger();
        let is_known = trigger.is_some_and(|trigger| !trigger.is_measure()) && self.counts_target_only();
        (one.events.is_taken() || is_known).then(|| self.counted(one))?
    }

    /// Handles late records: the kernel frees a task, and closes its account, milliseconds after its exit.
    pub(super) fn settle(&mut self) {
        if self.unwinder.is_none() {
            return;
        }
        // Counts may wait for a message of the last read.
        self.read(u64::MAX);
        let (begin, mut last, mut open) =
            (Instant::now(), Instant::now(), self.ingest.processes().open_accounts());
        while open > 0 && last.elapsed() < SETTLE.0 && begin.elapsed() < SETTLE.1 {
            std::thread::sleep(Duration::from_millis(5));
            self.read(u64::MAX);
            if open != std::mem::replace(&mut open, self.ingest.processes().open_accounts()) {
                last = Instant::now();
            }
        }
    }
}
