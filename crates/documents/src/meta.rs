//! Facts about a recording.

use plumb_profile::Meta;

document! {
    /// Facts about a recording, or about a part of it (see [`View::meta`](plumb_analyze::View::meta)).
    pub struct MetaDocument<'m> as "RecordingFacts" of (meta: &'m Meta) {
        version: u32 = crate::JSON_VERSION,
        command: &'m [String] = &meta.command,
        recorder: &'m str = &meta.recorder,
        host: &'m str = &meta.host,
        kernel: &'m str = &meta.kernel,
        arch: &'m str = &meta.arch,
        cpus: u32 = meta.cpus,
        start_unix_ns: u64 = meta.start_unix_ns,
        duration_ns: u64 = meta.duration_ns,
        /// CPU time of the target.
        pub target_cpu_ns: Option<u64> = meta.target_cpu_ns,
        frequency_hz: Option<u32> = meta.frequency_hz,
        /// Occurrences of the event, if there is only one.
        occurrences: Option<u64> = match meta.occurrences[..] {
            [only] => only,
            _ => None,
        },
        scope: &'static str = meta.scope.name(),
        lost_samples: u64 = meta.lost_samples,
        damaged_records: u64 = meta.damaged_records,
        warnings: Vec<String> = meta.warnings.clone(),
    }
}

impl MetaDocument<'_> {
    /// Replaces the warnings of the recording, by those of a part of it.
    pub fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}
