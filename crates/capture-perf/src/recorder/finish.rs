//! The end of a recording: what comes late is waited for, and what is known of the whole is put beside the samples.

use std::fmt;
use std::fs::File;
use std::time::{Duration, Instant};

use plumb_profile::{DsoId, Meta, Profile, Queued, Scope};

use super::Recorder;
use super::sampled::Sampled;
use crate::assist::HandedOver;
use crate::attr::{Code, Pace};
use crate::events::Attachment;
use crate::ingest::Statistics;
use crate::off_cpu::Unmeasured;
use crate::procfs;
use crate::setup::Setup;
use crate::steer::{self, Notice, Steering};
use crate::sys::process::Child;
use crate::sys::signals::{self, Signals};
use crate::sys::usage::{CpuTime, monotonic_ns, nanoseconds, own_cpu_time};
use crate::target::End;

/// At the end, accounts of processes are waited for until none has come for the first of these times, and no longer than
/// the second.
const SETTLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// Who has not ended so long after the command stays.
const LEAVE: Duration = Duration::from_millis(100);

/// A finished recording.
pub struct Recorded {
    /// What was recorded: addresses, not names. Its `meta` is filled in but for what only the caller knows.
    pub profile: Profile,
    /// What became of the samples.
    pub statistics: Statistics,
    /// How it was recorded.
    pub setup: Setup,
    /// Processor time of the target, user and kernel apart, if it is known.
    pub target_cpu: Option<CpuTime>,
    /// A command that outlives its recording.
    pub running: Option<Running>,
    /// Descendants that outlive a command.
    pub left: Descendants,
    /// What was walked in the kernel, and what was not; `None`: nothing was to be.
    pub handed_over: Option<HandedOver>,
    /// Times off the processor that are not in the profile; `None`: they were not measured.
    pub unmeasured: Option<Unmeasured>,
    /// Files that were deleted or replaced while the target used them, held open so that symbols can be read.
    pub vanished: Vec<(DsoId, File)>,
}

/// A command that still runs.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Asks it to end (SIGTERM). It may take its time, or refuse.
    pub fn terminate(&self) -> std::io::Result<()> {
        signals::send(self.0.pid(), libc::SIGTERM)
    }

    /// Waits for its end, or for a signal that ends plumb without it.
    pub fn wait(self, say: impl FnMut(Notice)) -> std::io::Result<End> {
        steer::wait(self.0, &Signals::watch()?, &mut Steering::default(), say)
    }
}

/// Processes that a command started and left behind at its end, and that are no longer recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Name of the command.
    command: String,
    /// Their pids, in ascending order.
    pids: Vec<u32>,
}

impl Descendants {
    /// Those of a command of this name that run.
    pub fn new(command: String, mut pids: Vec<u32>) -> Self {
        pids.sort_unstable();
        Self { command, pids }.living()
    }

    /// Those that run now.
    pub fn living(mut self) -> Self {
        self.pids.retain(|&pid| procfs::is_alive(pid));
        self
    }

    /// Those that stay: of a pipeline, say, some end just after the last.
    pub fn staying(mut self) -> Self {
        let begin = Instant::now();
        while !self.pids.is_empty() && begin.elapsed() < LEAVE {
            std::thread::sleep(LEAVE / 10);
            self = self.living();
        }
        self
    }
}

/// Who they are, and how to record them; empty: there are none.
impl fmt::Display for Descendants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// So many are named.
        const NAMED: usize = 8;
        let Self { command, pids } = self;
        let named: Vec<String> = pids.iter().take(NAMED).map(u32::to_string).collect();
        let more = if pids.len() > NAMED { ", ..." } else { "" };
        match &pids[..] {
            [] => Ok(()),
            [pid] => write!(
                f,
                "a descendant of {command} still ran when that ended (pid {pid}) and is no longer recorded; to record it and \
                 all that it starts: plumb record --tree {pid}"
            ),
            [first, ..] => write!(
                f,
                "{} descendants of {command} still ran when that ended (pids {}{more}) and are no longer recorded; to record \
                 them: plumb record -p {}; one with all that it starts: plumb record --tree {first}",
                pids.len(),
                named.join(", "),
                named.join(","),
            ),
        }
    }
}

impl Recorder {
    /// Ends the recording.
    pub fn finish(mut self) -> Recorded {
        self.stop();
        let ended = monotonic_ns();
        self.slow_down();
        let target_cpu = self.target_cpu();
        self.ingest.look_at_queues(true);
        self.read(u64::MAX);
        self.settle();
        if let Some(assisted) = &mut self.assisted {
            assisted.add_pending(&mut self.ingest, ended);
        }
        let left = self.descendants();
        let unmeasured = self.off_cpu().map(|off_cpu| off_cpu.unmeasured());
        let mut meta = self.facts(ended, target_cpu);
        let is_scaled = self.counts_target_only();
        for one in &self.sampled {
            if one.events.is_taken() {
                // Only what was lost is in no sample, and what came after the last of each processor.
                let counted = self.counted(one).filter(|_| one.is_by_frequency());
                counted.iter().for_each(|&counted| self.ingest.scale(one.id, 0..u64::MAX, counted));
                continue;
            }
            if !is_scaled || !one.is_scaled() {
                continue;
            }
            match (one.events.paced(), one.limit) {
                (Some((since, before, counted)), _) => {
                    self.ingest.scale_parts(one.id, [(0..since, before), (since..u64::MAX, counted)]);
                }
                // Each was to be a sample until they are too many, and some may have been lost.
                (None, Some(_)) => {
                    let counted = one.events.counted();
                    counted.iter().for_each(|&counted| self.ingest.scale(one.id, 0..u64::MAX, counted));
                }
                (None, None) => {}
            }
        }
        let running = if self.exited.is_none() { self.child.map(Running) } else { None };
        let lost = self.lost();
        let vanished = self.ingest.vanished();
        let handed_over = self.assisted.as_ref().map(|assisted| assisted.assistant().handed_over());
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
        }
    }

    /// Who still runs of what a command started, now that it has ended itself.
    fn descendants(&self) -> Descendants {
        let Some(name) = self.command.clone().filter(|_| self.exited.is_some()) else {
            return Descendants::default();
        };
        let pids = match &self.ground.attachment {
            Attachment::Cgroup(cgroup) => cgroup.pids(),
            Attachment::Everyone | Attachment::Processes(_) => self.ingest.followed().collect(),
        };
        Descendants::new(name, pids).staying()
    }

    /// What is known of the recording as a whole.
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
            Pace::Frequency(hz) => Some(hz),
            Pace::Period(_) => None,
        };
        meta.occurrences = self.sampled.iter().map(|one| self.occurrences_of(one)).collect();
        meta.scope = self.setup.scope;
        meta.user_only = clock.events.sampling().code == Code::User;
        meta.target_cpu_ns = target_cpu.map(CpuTime::total_ns);
        let stolen_ns = nanoseconds(procfs::stolen_time().saturating_sub(self.began.stolen));
        meta.queued = self.ingest.queued(ended_ns).map(|queued| Queued { stolen_ns, ..queued });
        meta.recorder_cpu_ns = Some(own_cpu_time().since(self.began.own).total_ns());
        meta.lost_samples = self.lost();
        meta.damaged_records = self.ingest.statistics().damaged_records;
        meta.stack_copy_bytes = self.sampled[0].events.sampling().stack_copy;
        meta.warnings.extend(self.setup.limits.iter().cloned());
        let unknown = self.ingest.unknown_interpreters();
        meta.warnings.extend(unknown.map(|name| format!("{name} is not known: its functions are missing")));
        meta
    }

    /// Whether the events count nothing but what happens to the target.
    fn counts_target_only(&self) -> bool {
        match self.ground.attachment {
            Attachment::Cgroup(_) | Attachment::Processes(_) => true,
            Attachment::Everyone => self.setup.scope == Scope::System,
        }
    }

    /// How often an event happened to the target; `None` where it is a clock, or that is not known.
    fn occurrences_of(&self, one: &Sampled) -> Option<u64> {
        let trigger = one.events.sampling().counter.trigger();
        let is_known = trigger.is_some_and(|trigger| !trigger.is_told()) && self.counts_target_only();
        (one.events.is_taken() || is_known).then(|| self.counted(one))?
    }

    /// Takes what comes late: the kernel frees a task, and so closes its account, milliseconds after its exit.
    pub(super) fn settle(&mut self) {
        if self.assisted.is_none() {
            return;
        }
        // Counts may wait for a message of the last look.
        self.read(u64::MAX);
        let (begin, mut last, mut open) = (Instant::now(), Instant::now(), self.ingest.open_accounts());
        while open > 0 && last.elapsed() < SETTLE.0 && begin.elapsed() < SETTLE.1 {
            std::thread::sleep(Duration::from_millis(5));
            self.read(u64::MAX);
            if open != std::mem::replace(&mut open, self.ingest.open_accounts()) {
                last = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Descendants;

    #[test]
    fn who_is_left_is_named_with_what_records_them() {
        let left = |pids: &[u32]| Descendants { command: "sh".into(), pids: pids.to_vec() }.to_string();
        assert_eq!(left(&[]), "");
        assert!(left(&[12]).contains("(pid 12)") && left(&[12]).ends_with("plumb record --tree 12"));
        let several = left(&[12, 13]);
        assert!(several.starts_with("2 descendants of sh") && several.contains("(pids 12, 13)"), "{several}");
        assert!(several.contains("plumb record -p 12,13;"), "{several}");
        let many = left(&Vec::from_iter(1..=100));
        assert!(many.starts_with("100 descendants") && many.contains("7, 8, ...)"), "{many}");
    }

    #[test]
    fn who_has_ended_is_not_left() {
        // The second is above the largest pid.
        let own = std::process::id();
        assert_eq!(Descendants::new("sh".into(), vec![4_194_999, own]).pids, [own]);
    }
}
