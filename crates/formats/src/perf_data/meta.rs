//! Converts the header to the profile model's metadata.

use linux_perf_event_reader::{AttrFlags, SampleFormat};
use plumb_profile::{Meta, Scope};

use super::features::Header;

impl Header {
    /// Returns the metadata in the header. Times and losses are left to the reader of the records.
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

    /// Converts a time of the sample clock to nanoseconds since 1970-01-01 UTC, if the file has both clocks.
    pub fn unix_ns(&self, time: u64) -> Option<u64> {
        let (unix, clock) = self.clock?;
        unix.checked_add(time)?.checked_sub(clock)
    }

    /// Returns the command that `perf record` was told to run, as far as its command line separates it from options: the part after `--`,
    /// otherwise all of it.
    fn recorded_command(&self) -> Vec<String> {
        let start = self.command.iter().position(|argument| argument == "--").map_or(0, |dashes| dashes + 1);
        self.command[start..].to_vec()
    }

    fn scope(&self) -> Scope {
        let Some(event) = self.events.first() else { return Scope::Unknown };
        // perf records the CPU of a sample if events are attached to CPUs, not to threads.
        if event.attr.sample_format.contains(SampleFormat::CPU) {
            Scope::System
        } else if event.attr.flags.contains(AttrFlags::INHERIT) {
            Scope::Inherited
        } else {
            Scope::Unknown
        }
    }
}
