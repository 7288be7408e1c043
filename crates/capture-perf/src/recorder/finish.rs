//! The end of a recording: waits for late records, and adds facts on the whole recording to the samples.

use std::fs::File;

use plumb_capture_api::{KernelUnwinder, SamplingRate, Unmeasured, UnwindFallbackStats};
use plumb_ingest::{EndedCgroups, Statistics};
use plumb_process::usage::{CpuTime, monotonic_ns};
use plumb_profile::{DsoId, Meta, Profile, Queued};
use plumb_target::{Descendants, Running};

use super::Recorder;
use crate::attr::Code;
use crate::setup::Setup;

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
    /// Finishes the recording.
    pub fn finish(mut self) -> Recorded {
        self.stop();
        self.other_programs.look(self.samples.unwinder.as_mut(), true);
        let ended = monotonic_ns();
        self.slow_down();
        let target_cpu = self.target.cpu_time();
        self.samples.ingest.processes().look_at_queues(true);
        self.samples.read(&self.events, u64::MAX);
        self.samples.settle(&self.events);
        self.samples.add_pending(ended);
        let left = self.target.descendants(&self.samples.ingest);
        let unmeasured = self.samples.unmeasured();
        let mut meta = self.facts(ended, target_cpu);
        self.samples.weigh(&self.events, self.counts_target_only());
        let running = self.target.running();
        let lost = self.lost();
        let (vanished, cgroups) = (self.samples.vanished(), self.samples.ingest.processes().take_cgroups());
        let growth = self.counters(target_cpu).since(self.began.counters());
        meta.warnings.extend(self.coverage().gap(&growth));
        let handed_over = self.samples.kernel().map(KernelUnwinder::handed_over);
        let (mut profile, mut statistics) = self.samples.ingest.finish();
        statistics.lost_samples = lost;
        meta.damaged_records = statistics.damaged_records;
        meta.warnings.extend(Some(left.to_string()).filter(|text| !text.is_empty()));
        profile.meta = meta;
        let setup = self.setup;
        Recorded {
            profile,
            statistics,
            setup,
            target_cpu,
            running,
            left,
            handed_over,
            unmeasured,
            vanished,
            cgroups,
        }
    }

    /// The facts on the recording as a whole.
    pub(super) fn facts(&self, ended_ns: u64, target_cpu: Option<CpuTime>) -> Meta {
        let (samples, began) = (&self.samples, &self.began);
        let mut meta = samples.profile().meta.clone();
        meta.host = self.host.name.clone();
        meta.kernel = self.host.kernel.clone();
        meta.arch = std::env::consts::ARCH.into();
        meta.cpus = u32::try_from(self.host.cpus.len()).unwrap_or(u32::MAX);
        meta.start_unix_ns = began.unix_ns;
        meta.start_ns = began.monotonic_ns;
        meta.duration_ns = ended_ns.saturating_sub(began.monotonic_ns);
        let clock = self.events.clock().unwrap_or(self.events.first()).events.sampling();
        meta.frequency_hz = match clock.pace {
            SamplingRate::Frequency(hz) => Some(hz),
            SamplingRate::Period(_) => None,
        };
        // At several rates, the number of samples does not tell how much of the time they cover.
        meta.frequency_hz = meta.frequency_hz.filter(|_| !self.took_fewer());
        let (kernel, of_target) = (samples.kernel(), self.counts_target_only());
        meta.occurrences = self.events.iter().map(|one| one.occurrences(kernel, of_target)).collect();
        meta.scope = self.setup.scope;
        meta.user_only = clock.code == Code::User;
        meta.target_cpu_ns = target_cpu.map(CpuTime::total_ns);
        let (stolen_ns, throttled_ns) = (began.stolen_ns(), began.throttled_ns());
        let queued = samples.ingest.queued(ended_ns);
        meta.queued = queued.map(|queued| Queued { stolen_ns, throttled_ns, ..queued });
        meta.recorder_cpu_ns = Some(began.own_cpu().total_ns());
        meta.lost_samples = self.lost();
        meta.damaged_records = samples.statistics().damaged_records;
        meta.stack_copy_bytes = self.events.first().events.sampling().stack_copy;
        meta.warnings.extend(self.setup.limits.iter().cloned());
        let unknown = samples.ingest.unknown_interpreters();
        meta.warnings.extend(unknown.map(|name| format!("{name} is not known: its functions are missing")));
        meta
    }

    /// The facts about the whole recording, as if it had ended now.
    pub fn facts_so_far(&mut self) -> Meta {
        let target_cpu = self.target.cpu_time();
        self.facts(monotonic_ns(), target_cpu)
    }

    /// The recording so far, as if it had ended now. Stacks that later samples might complete are truncated in it.
    pub fn so_far(&mut self) -> Profile {
        let target_cpu = self.target.cpu_time();
        let mut profile = self.samples.meanwhile(|profile| profile.clone());
        profile.meta = self.facts(monotonic_ns(), target_cpu);
        if self.samples.has_folded {
            profile.meta.target_cpu_ns = None;
            profile.meta.warnings.push(
                "to save memory earlier samples are folded: their weights are there, but those with the same stack are one sample, \
                 and processes that have ended are one for each program"
                    .into(),
            );
        }
        profile.samples.sort_by_time();
        profile
    }
}
