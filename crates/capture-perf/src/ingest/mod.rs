//! From perf records to a profile: who ran, what was mapped where, and the unwound stack of each sample.
//!
//! Records come in the order of their time, whether from a ring or from a perf.data file. The profile that comes
//! out holds addresses only. Not here: reading rings, sorting records, parsing file headers, symbols.

mod options;
mod statistics;

pub use options::{Filter, Source};
pub use statistics::Statistics;

use linux_perf_event_reader::RawEventRecord;
use plumb_profile::{EventId, Profile};

/// Builds a profile from records.
#[derive(Debug)]
pub struct Ingest {
    source: Source,
    filter: Filter,
    profile: Profile,
    statistics: Statistics,
}

impl Ingest {
    /// An ingest of records from `source` that keeps the samples that `filter` lets through.
    pub fn new(source: Source, filter: Filter) -> Self {
        Self { source, filter, profile: Profile::default(), statistics: Statistics::default() }
    }

    /// Declares an event that samples may belong to: its name (`cpu-clock`) and the unit of its period (`ns`).
    pub fn add_event(&mut self, name: &str, unit: &str) -> EventId {
        let (name, unit) = (self.profile.strings.add(name), self.profile.strings.add(unit));
        self.profile.events.push(plumb_profile::Event { name, unit })
    }

    /// Follows `pid` and whatever it forks from now on. Without effect under [`Filter::All`].
    pub fn follow(&mut self, pid: u32) {
        if let Filter::Tree(pids) = &mut self.filter {
            pids.push(pid);
        }
    }

    /// Learns names, parents and mappings of a running process and its threads from /proc
    /// ([`Source::Live`] only): for processes that started before the recording.
    pub fn read_process(&mut self, pid: u32) {
        let _ = (pid, self.source);
    }

    /// [`Ingest::read_process`] for all that run.
    pub fn read_all_processes(&mut self) {}

    /// Tells the build id of the file that records call `path`, as a perf.data file's own table does. For the
    /// kernel `path` is `[kernel.kallsyms]`.
    pub fn build_id(&mut self, path: &[u8], id: &[u8]) {
        let _ = (path, id);
    }

    /// Takes the next record. `event` is the one that it belongs to (by sample id or by ring).
    /// A record that can't be read is counted in [`Statistics::damaged_records`].
    pub fn record(&mut self, event: EventId, record: &RawEventRecord<'_>) {
        let _ = (event, record);
    }

    /// Counts samples that the kernel dropped, where the caller learns of them by other means than records.
    pub fn lost(&mut self, samples: u64) {
        self.statistics.lost_samples += samples;
    }

    /// What was seen so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The profile so far, for the caller to fill in what it knows (`meta`).
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// The finished profile: samples sorted by time, mappings that frames fall into.
    pub fn finish(self) -> (Profile, Statistics) {
        (self.profile, self.statistics)
    }
}
