//! `meta.json`: the format's version and [`Meta`].

use plumb_profile::{Meta, Queued, QueuedThread, Scope, Untold};
use serde::{Deserialize, Serialize};

/// Value of the `format` field.
pub(super) const FORMAT: &str = "plumb recording";

/// The part that every version of the format keeps: read first, to decide whether the rest can be read.
#[derive(Serialize, Deserialize)]
pub(super) struct Envelope {
    pub format: String,
    pub version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Version {
    pub major: u32,
    pub minor: u32,
}

/// The whole file. Fields that are missing have the value that means "not known".
#[derive(Serialize, Deserialize)]
pub(super) struct MetaFile {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    meta: MetaFields,
}

/// [`Meta`], field by field.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct MetaFields {
    recorder: String,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<u8>,
    host: String,
    kernel: String,
    arch: String,
    cpus: u32,
    start_unix_ns: u64,
    start_ns: u64,
    duration_ns: u64,
    frequency_hz: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    event_occurrences: Vec<Option<u64>>,
    scope: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user_only: bool,
    target_cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<QueuedFields>,
    recorder_cpu_ns: Option<u64>,
    lost_samples: u64,
    damaged_records: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_kernel: bool,
    stack_copy_bytes: u32,
    #[serde(flatten)]
    untold: UntoldFields,
    symbolized: bool,
    warnings: Vec<String>,
}

/// [`Untold`], field by field.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct UntoldFields {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cuts_untold: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    samples_untold: bool,
}

/// [`Queued`], field by field.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct QueuedFields {
    ran_ns: u64,
    waited_ns: u64,
    unseen_ns: u64,
    stolen_ns: u64,
    throttled_ns: Option<u64>,
    busiest: Option<ThreadFields>,
}

/// [`QueuedThread`], field by field.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ThreadFields {
    pid: u32,
    tid: u32,
    comm: String,
    lived_ns: u64,
    ran_ns: u64,
    waited_ns: u64,
    unseen_ns: u64,
}

impl From<Queued> for QueuedFields {
    fn from(queued: Queued) -> Self {
        let Queued { ran_ns, waited_ns, unseen_ns, stolen_ns, throttled_ns, busiest } = queued;
        QueuedFields {
            ran_ns,
            waited_ns,
            unseen_ns,
            stolen_ns,
            throttled_ns,
            busiest: busiest.map(Into::into),
        }
    }
}

impl From<QueuedFields> for Queued {
    fn from(fields: QueuedFields) -> Self {
        let QueuedFields { ran_ns, waited_ns, unseen_ns, stolen_ns, throttled_ns, busiest } = fields;
        Queued { ran_ns, waited_ns, unseen_ns, stolen_ns, throttled_ns, busiest: busiest.map(Into::into) }
    }
}

impl From<QueuedThread> for ThreadFields {
    fn from(thread: QueuedThread) -> Self {
        let QueuedThread { pid, tid, comm, lived_ns, ran_ns, waited_ns, unseen_ns } = thread;
        ThreadFields { pid, tid, comm, lived_ns, ran_ns, waited_ns, unseen_ns }
    }
}

impl From<ThreadFields> for QueuedThread {
    fn from(fields: ThreadFields) -> Self {
        let ThreadFields { pid, tid, comm, lived_ns, ran_ns, waited_ns, unseen_ns } = fields;
        QueuedThread { pid, tid, comm, lived_ns, ran_ns, waited_ns, unseen_ns }
    }
}

impl MetaFile {
    pub(super) fn new(meta: &Meta, (major, minor): (u32, u32)) -> Self {
        let meta = meta.clone();
        MetaFile {
            envelope: Envelope { format: FORMAT.into(), version: Version { major, minor } },
            meta: MetaFields {
                recorder: meta.recorder,
                command: meta.command,
                host: meta.host,
                kernel: meta.kernel,
                arch: meta.arch,
                cpus: meta.cpus,
                start_unix_ns: meta.start_unix_ns,
                start_ns: meta.start_ns,
                duration_ns: meta.duration_ns,
                frequency_hz: meta.frequency_hz,
                occurrences: match meta.occurrences[..] {
                    [only] => only,
                    _ => None,
                },
                event_occurrences: meta.occurrences,
                scope: meta.scope.name().into(),
                user_only: meta.user_only,
                target_cpu_ns: meta.target_cpu_ns,
                queued: meta.queued.map(Into::into),
                recorder_cpu_ns: meta.recorder_cpu_ns,
                lost_samples: meta.lost_samples,
                damaged_records: meta.damaged_records,
                exit_status: meta.exit_status,
                by_kernel: meta.by_kernel,
                stack_copy_bytes: meta.stack_copy_bytes,
                untold: UntoldFields { cuts_untold: meta.untold.cuts, samples_untold: meta.untold.samples },
                symbolized: meta.symbolized,
                warnings: meta.warnings,
            },
        }
    }

    /// The model's facts. A scope that this version does not know is [`Scope::Unknown`].
    pub(super) fn into_meta(self) -> Meta {
        let meta = self.meta;
        Meta {
            recorder: meta.recorder,
            command: meta.command,
            host: meta.host,
            kernel: meta.kernel,
            arch: meta.arch,
            cpus: meta.cpus,
            start_unix_ns: meta.start_unix_ns,
            start_ns: meta.start_ns,
            duration_ns: meta.duration_ns,
            frequency_hz: meta.frequency_hz,
            occurrences: match (meta.event_occurrences, meta.occurrences) {
                (none, Some(only)) if none.is_empty() => vec![Some(only)],
                (each, _) => each,
            },
            scope: Scope::from_name(&meta.scope).unwrap_or_default(),
            user_only: meta.user_only,
            target_cpu_ns: meta.target_cpu_ns,
            queued: meta.queued.map(Into::into),
            recorder_cpu_ns: meta.recorder_cpu_ns,
            lost_samples: meta.lost_samples,
            damaged_records: meta.damaged_records,
            exit_status: meta.exit_status,
            by_kernel: meta.by_kernel,
            stack_copy_bytes: meta.stack_copy_bytes,
            untold: Untold { cuts: meta.untold.cuts_untold, samples: meta.untold.samples_untold },
            symbolized: meta.symbolized,
            warnings: meta.warnings,
        }
    }
}
