//! What a profile says about its own making: machine, command, how much was seen and how much was missed.

use crate::table::Id;
use crate::{EventId, Queued};

/// Facts about the recording as a whole. Anything unknown is empty, 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// What wrote the profile, such as `plumb 0.1.0` or `perf 6.1.187`.
    pub recorder: String,
    /// The command that was recorded, one string an argument.
    pub command: Vec<String>,
    /// Its exit status as a shell gives it (128 and the signal that ended it), if its end was seen.
    pub exit_status: Option<u8>,
    /// Host name.
    pub host: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Machine architecture (`uname -m`).
    pub arch: String,
    /// Number of processors online.
    pub cpus: u32,
    /// Start of recording, nanoseconds since 1970-01-01 UTC.
    pub start_unix_ns: u64,
    /// Start of recording on the clock that sample times use.
    pub start_ns: u64,
    /// Wall time of the recording in nanoseconds.
    pub duration_ns: u64,
    /// Samples asked for per second of processor time, if sampling went by frequency; of events that are no clock, per second
    /// at most.
    pub frequency_hz: Option<u32>,
    /// By event, in their order, how often it happened to the target as the kernel counted it, sampled or not. Of clocks this is not
    /// known; nor of events beyond the end of the list.
    pub occurrences: Vec<Option<u64>>,
    /// Whom the events were attached to.
    pub scope: Scope,
    /// Whether only user code was sampled by time: what the kernel did is in no sample then.
    pub user_only: bool,
    /// Processor time that the target used while recorded, as the kernel accounted it, in nanoseconds.
    pub target_cpu_ns: Option<u64>,
    /// How long the target's threads waited for a processor.
    pub queued: Option<Queued>,
    /// Processor time that the recorder itself used, in nanoseconds.
    pub recorder_cpu_ns: Option<u64>,
    /// Samples that the kernel dropped because nobody had made room for them in time.
    pub lost_samples: u64,
    /// Records that could not be read (truncated or damaged input).
    pub damaged_records: u64,
    /// Whether stacks were walked in the kernel where that was possible.
    pub by_kernel: bool,
    /// Bytes of user stack copied with each sample at the end of the recording.
    pub stack_copy_bytes: u32,
    /// Whether stacks may end early without a marker that says so, as those of an imported profile do: then nobody knows how many are
    /// complete.
    pub cuts_untold: bool,
    /// Whether symbols have been resolved.
    pub symbolized: bool,
    /// What a reader of this profile should be told, one sentence each.
    pub warnings: Vec<String>,
}

/// Beginning of the warning about coverage.
pub const COVERAGE_GAP: &str = "coverage is ";

impl Meta {
    /// How often an event happened to the target, if that is known.
    pub fn occurrences_of(&self, event: EventId) -> Option<u64> {
        *self.occurrences.get(event.index())?
    }

    /// Among the warnings, why samples account for less or more processor time than the target used.
    pub fn coverage_gap(&self) -> Option<&str> {
        self.warnings.iter().find(|text| text.starts_with(COVERAGE_GAP)).map(String::as_str)
    }

    /// Share of the processors' time that nobody used, for a recording of the whole machine.
    pub fn idle_share(&self) -> Option<f64> {
        let whole = self.duration_ns as f64 * f64::from(self.cpus);
        let used = self.target_cpu_ns? as f64;
        // The kernel accounts by its tick, so that a busy machine may come out a little above the whole.
        (self.scope == Scope::System && whole > 0.0).then(|| (1.0 - used / whole).max(0.0))
    }
}

/// Whom the sampled events were attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Not known (an imported profile).
    #[default]
    Unknown,
    /// Per processor, counting only in a cgroup: that of the target, or one made for it.
    Cgroup,
    /// Per processor, everything, filtered to the target's processes while recording.
    FilteredSystem,
    /// Per processor, everything.
    System,
    /// Attached to the target's threads and inherited by their children: loses samples of short-lived processes.
    Inherited,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 5] =
        [Scope::Unknown, Scope::Cgroup, Scope::FilteredSystem, Scope::System, Scope::Inherited];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Unknown => "unknown",
            Scope::Cgroup => "cgroup",
            Scope::FilteredSystem => "filtered-system",
            Scope::System => "system",
            Scope::Inherited => "inherited",
        }
    }

    /// The scope called `name`.
    pub fn from_name(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}
