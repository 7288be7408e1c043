//! What the header says, in the words of the profile model.

use linux_perf_event_reader::{AttrFlags, SampleFormat};
use plumb_profile::{Meta, Scope};

use super::features::Header;

impl Header {
    /// The facts that the header knows. Times and losses are left for whoever reads the records.
    pub fn meta(&self) -> Meta {
        let recorder = format!("perf {}", self.perf_version);
        Meta {
            recorder: recorder.trim_end().into(),
            command: self.recorded_command(),
            host: self.host.clone(),
            kernel: self.kernel.clone(),
            arch: self.arch.clone(),
            cpus: self.cpus,
            frequency_hz: self.events.iter().find_map(|event| event.frequency_hz()),
            scope: self.scope(),
            stack_copy_bytes: self.events.iter().map(|event| event.attr.sample_stack_user).max().unwrap_or(0),
            ..Meta::default()
        }
    }

    /// Nanoseconds since 1970-01-01 UTC when the sample clock showed `time`, if the file tells.
    pub fn unix_ns(&self, time: u64) -> Option<u64> {
        let (unix, clock) = self.clock?;
        unix.checked_add(time)?.checked_sub(clock)
    }

    /// What `perf record` was told to run, as far as its command line tells it from options: what follows `--`,
    /// else all of it.
    fn recorded_command(&self) -> Vec<String> {
        let start = self.command.iter().position(|argument| argument == "--").map_or(0, |dashes| dashes + 1);
        self.command[start..].to_vec()
    }

    fn scope(&self) -> Scope {
        let Some(event) = self.events.first() else { return Scope::Unknown };
        // perf asks for the processor of a sample when events are attached to processors, not to threads.
        if event.attr.sample_format.contains(SampleFormat::CPU) {
            Scope::System
        } else if event.attr.flags.contains(AttrFlags::INHERIT) {
            Scope::Inherited
        } else {
            Scope::Unknown
        }
    }
}
