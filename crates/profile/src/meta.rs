//! The metadata of a profile: machine, command, samples taken and lost.

use crate::table::Id;
use crate::{EventId, Queued};

/// Metadata of the recording. Unknown values are empty, 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Tool that wrote the profile, such as `plumb 0.1.0` or `perf 6.1.187`.
    pub recorder: String,
    /// The recorded command, one string per argument.
    pub command: Vec<String>,
    /// Exit status of the command as in a shell (128 plus the number of the signal that ended it), if its exit was seen.
    pub exit_status: Option<u8>,
    /// Host name.
    pub host: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Machine architecture (`uname -m`).
    pub arch: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Start of recording, nanoseconds since 1970-01-01 UTC.
    pub start_unix_ns: u64,
    /// Start of recording on the clock that sample times use.
    pub start_ns: u64,
    /// Wall time of the recording in nanoseconds.
    pub duration_ns: u64,
    /// Samples requested per second of CPU time, if sampling was by frequency; for events other than clocks, at most per
    /// second.
    pub frequency_hz: Option<u32>,
    /// Number of times each event occurred in the target, as counted by the kernel, sampled or not; in the order of events. Not known for
    /// clocks, nor for events beyond the end of the list.
    pub occurrences: Vec<Option<u64>>,
    /// The scope that the events were attached to.
    pub scope: Scope,
    /// Whether time was only sampled in user code: then no sample covers the kernel.
    pub user_only: bool,
    /// CPU time that the target used during the recording, as accounted by the kernel, in nanoseconds.
    pub target_cpu_ns: Option<u64>,
    /// Run-queue wait of the target's threads.
    pub queued: Option<Queued>,
    /// CPU time that the recorder itself used, in nanoseconds.
    pub recorder_cpu_ns: Option<u64>,
    /// Number of samples that the kernel dropped because the ring buffer was full.
    pub lost_samples: u64,
    /// Number of records that could not be read (truncated or damaged input).
    pub damaged_records: u64,
    /// Whether stacks were unwound in the kernel where possible.
    pub by_kernel: bool,
    /// Bytes of user stack copied with each sample at the end of the recording.
    pub stack_copy_bytes: u32,
    /// Facts that an imported profile does not tell.
    pub untold: Untold,
    /// Whether symbols have been resolved.
    pub symbolized: bool,
    /// Warnings for the reader, one sentence each.
    pub warnings: Vec<String>,
}

/// Facts that an imported profile may not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// Whether stacks may be truncated without a marker: then the number of complete stacks is unknown.
    pub cuts: bool,
    /// Whether a sample may be the sum of several, as where a file has only costs of stacks: then the number of samples is unknown.
    pub samples: bool,
}

/// Start of the warning about coverage.
pub const COVERAGE_GAP: &str = "coverage is ";

impl Meta {
    /// Returns the number of times that an event occurred in the target, if known.
    pub fn occurrences_of(&self, event: EventId) -> Option<u64> {
        *self.occurrences.get(event.index())?
    }

    /// Returns the warning why samples account for less or more CPU time than the target used, if there is one.
    pub fn coverage_gap(&self) -> Option<&str> {
        self.warnings.iter().find(|text| text.starts_with(COVERAGE_GAP)).map(String::as_str)
    }

    /// Returns the idle share of the CPUs' time, for a recording of the whole machine.
    pub fn idle_share(&self) -> Option<f64> {
        let whole = self.duration_ns as f64 * f64::from(self.cpus);
        let used = self.target_cpu_ns? as f64;
        // The kernel's account has the resolution of a tick, so a busy machine may slightly exceed the whole.
        (self.scope == Scope::System && whole > 0.0).then(|| (1.0 - used / whole).max(0.0))
    }
}

/// The scope that the sampled events were attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Not known (an imported profile).
    #[default]
    Unknown,
    /// Per CPU, counting only in a cgroup: that of the target, or one created for it.
    Cgroup,
    /// Per CPU, everything, filtered to the target's processes while recording.
    FilteredSystem,
    /// Per CPU, everything.
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

    /// Returns the scope called `name`.
    pub fn from_name(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}
