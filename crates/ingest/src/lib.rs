//! Turns perf records into a profile: running processes, their mappings, and the unwound stack of each sample.
//!
//! Records come in order of time, from a ring or from a perf.data file. The resulting profile
//! has addresses only. `Ingest` passes each record to the part that handles it: `processes` (running tasks), `spaces`
//! (mappings), `stacks`, `weights` (weights of samples). Elsewhere: reading rings, sorting records, parsing file headers, symbols.

mod cgroups;
mod handles;
mod header;
mod memory;
mod off_cpu;
mod options;
mod output;
mod perf_records;
mod processes;
mod recorded;
mod registers;
mod samples;
mod sideband;
mod spaces;
mod stacks;
mod statistics;
mod taken;
mod weights;

pub use cgroups::EndedCgroups;
pub use handles::{MappedCode, RecordedProcesses, SampleWeights};
pub use memory::{CopiedMemory, ProcessMemory};
pub use options::{Filter, Source};
pub use stacks::StoppedStack;
pub use statistics::Statistics;
pub use taken::TakenProfile;

use std::fs::File;
use std::path::Path;

use linux_perf_event_reader::{RawData, RawEventRecord, RecordType, SampleFormat, constants as perf};
use plumb_profile::{DsoId, Event, EventId, Profile, Queued};

use output::Output;
use perf_records::{Damaged, Reader};
use processes::Processes;
use recorded::RecordedMachine;
use samples::Sideband;
use stacks::{DeferredStacks, Stacks};
use weights::Weights;

/// Builds a profile from records.
#[derive(Debug)]
pub struct Ingest {
    out: Output,
    processes: Processes,
    stacks: Stacks,
    weights: Weights,
    sideband: Sideband,
    deferred_stacks: DeferredStacks,
    cgroups: EndedCgroups,
    /// Time of the last sample that was kept.
    now_ns: u64,
    /// Buffer for a record that comes in two parts.
    joined: Vec<u8>,
}

impl Ingest {
    /// An ingest of records from `source` that keeps the samples selected by `filter`.
    pub fn new(source: Source, filter: Filter) -> Self {
        Self {
            out: Output::default(),
            processes: Processes::new(source, &filter),
            stacks: Stacks::new(source),
            weights: Weights::default(),
            sideband: Sideband::default(),
            deferred_stacks: DeferredStacks::default(),
            cgroups: EndedCgroups::default(),
            now_ns: 0,
            joined: Vec::new(),
        }
    }

    /// Declares an event of samples: its name (`cpu-clock`) and the unit of its period (`ns`).
    pub fn add_event(&mut self, name: &str, unit: &str) -> EventId {
        let (name, unit) = (self.out.profile.strings.add(name), self.out.profile.strings.add(unit));
        self.weights.add_event();
        self.out.profile.events.push(Event { name, unit })
    }

    /// Sets the build ID of the file that records call `path`, as listed in a perf.data file, before the
    /// records that use it. For the kernel `path` is `[kernel.kallsyms]`.
    pub fn build_id(&mut self, path: &[u8], id: &[u8]) {
        match path.starts_with(b"[kernel.kallsyms]") {
            true => self.stacks.kernel.set_build_id(id),
            false => self.processes.spaces.set_build_id(path, id),
        }
    }

    /// Handles the next record. `event` is its event (by sample ID or by ring).
    /// An unreadable record is counted in [`Statistics::damaged_records`].
    pub fn record(&mut self, event: EventId, record: &RawEventRecord<'_>) {
        let mut joined = std::mem::take(&mut self.joined);
        let bytes = match record.data {
            RawData::Single(bytes) => bytes,
            RawData::Split(first, second) => {
                joined.clear();
                joined.extend_from_slice(first);
                joined.extend_from_slice(second);
                &joined
            }
        };
        if self.dispatch(event, record, bytes).is_err() {
            self.out.statistics.damaged_records += 1;
        }
        self.joined = joined;
    }

    fn dispatch(&mut self, event: EventId, record: &RawEventRecord<'_>, bytes: &[u8]) -> Result<(), Damaged> {
        let reader = Reader::new(bytes, &record.parse_info);
        let misc = record.misc;
        // Recorders synthesize records of earlier events without a time.
        let time_ns = || record.common_data().ok().and_then(|data| data.timestamp).filter(|&time| time != 0);
        match record.record_type {
            RecordType::SAMPLE => {
                let mut sample =
                    perf_records::Sample::decode(bytes, misc, self.weights.of(event), &record.parse_info)?;
                if !record.parse_info.sample_format.contains(SampleFormat::PERIOD) {
                    sample.period = self.weights.changed(event, sample.time).unwrap_or(sample.period);
                }
                self.sample(event, &sample);
            }
            RecordType::MMAP2 => self.mmap(&perf_records::Mmap::decode2(reader, misc)?, misc),
            RecordType::MMAP => self.mmap(&perf_records::Mmap::decode(reader, misc)?, misc),
            RecordType::COMM => {
                let is_exec = misc & perf::PERF_RECORD_MISC_COMM_EXEC != 0;
                self.comm(&perf_records::Comm::decode(reader)?, is_exec, time_ns());
            }
            RecordType::FORK => {
                let is_synthetic = misc & perf::PERF_RECORD_MISC_FORK_EXEC != 0;
                let fork = perf_records::Task::decode(reader)?;
                self.processes.fork(&mut self.out.profile, &fork, is_synthetic, time_ns());
            }
            RecordType::EXIT => {
                let cpu = record.common_data().ok().and_then(|data| data.cpu);
                self.exit(&perf_records::Task::decode(reader)?, cpu, time_ns())
            }
            perf_records::Deferred::TYPE => {
                let tid = record.common_data().ok().and_then(|data| data.tid).map(i32::cast_unsigned);
                self.deferred(tid, &perf_records::Deferred::decode(reader)?);
            }
            RecordType::LOST => self.out.statistics.lost_records += perf_records::lost(reader)?,
            RecordType::THROTTLE => self.out.statistics.throttled += 1,
            RecordType::LOST_SAMPLES => {
                self.out.statistics.lost_samples += perf_records::lost_samples(reader)?
            }
            _ => {}
        }
        Ok(())
    }

    fn comm(&mut self, comm: &perf_records::Comm<'_>, is_exec: bool, time_ns: Option<u64>) {
        if is_exec {
            let tasks = &mut self.processes.tasks;
            for tid in tasks.takes_over(comm.pid).into_iter().chain([comm.tid]) {
                let Some(thread) = tasks.threads.get_mut(&tid) else { continue };
                thread.stacks.settle_exec(&mut self.out);
                thread.stacks.settle_cut(&mut self.out);
            }
        }
        self.processes.comm(&mut self.out.profile, comm, is_exec, time_ns);
    }

    fn exit(&mut self, exit: &perf_records::Task, cpu: Option<u32>, time_ns: Option<u64>) {
        if let Some(thread) = self.processes.tasks.threads.get_mut(&exit.tid) {
            thread.stacks.settle_cut(&mut self.out);
        }
        self.processes.exit(&mut self.out.profile, exit, cpu, time_ns);
    }

    fn mmap(&mut self, mmap: &perf_records::Mmap<'_>, misc: u16) {
        if !mmap.is_of_kernel(misc) {
            self.processes.mmap(&mut self.out.profile, mmap);
        } else if !self.processes.scope.is_live() {
            // This machine's kernel is known from /proc.
            self.stacks.kernel.map(mmap.range(), &String::from_utf8_lossy(mmap.path));
        }
    }

    fn settle_all(&mut self) {
        for thread in self.processes.tasks.threads.values_mut() {
            thread.stacks.settle_cut(&mut self.out);
        }
    }

    /// The counts so far.
    pub fn statistics(&self) -> &Statistics {
        &self.out.statistics
    }

    /// The profile so far. Samples are in order of arrival, and some stacks may still change.
    pub fn profile(&self) -> &Profile {
        &self.out.profile
    }

    /// Sets the machine that records of [`Source::File`] come from, before the first of them: its name in `uname -m`, and the directory with
    /// its files, if they are not at their own paths.
    pub fn recorded_on(&mut self, name: &str, files: Option<&Path>) {
        self.out.profile.meta.arch = name.to_owned();
        self.processes.spaces.set_machine(RecordedMachine::new(name, files));
    }

    /// The profile so far, for the caller to add facts.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.out.profile
    }

    /// Frames' files that were deleted or replaced since they were mapped, held open: symbols have to be read through
    /// these (`/proc/self/fd/N`).
    pub fn vanished(&self) -> Vec<(DsoId, File)> {
        self.processes.spaces.vanished()
    }

    /// The followed processes, including those that have ended.
    pub fn followed(&self) -> impl Iterator<Item = u32> {
        self.processes.scope.followed()
    }

    /// All run-queue waits up to a time. `None`: they were not measured, or the kernel doesn't report them.
    pub fn queued(&self, end_ns: u64) -> Option<Queued> {
        self.processes.queued(end_ns)
    }

    /// The interpreters with samples that are not known.
    pub fn unknown_interpreters(&self) -> impl Iterator<Item = &str> {
        self.processes.spaces.unknown_interpreters()
    }

    /// The finished profile: samples sorted by time, with the mappings that frames fall into.
    pub fn finish(mut self) -> (Profile, Statistics) {
        self.settle_all();
        self.out.statistics.deferred_missing = self.deferred_stacks.missing();
        let Self { out: Output { mut profile, statistics }, mut processes, mut weights, .. } = self;
        processes.lives.accounts.drop_parts(&mut profile);
        weights.finish(&mut processes, &mut profile);
        profile.samples.sort_by_time();
        (profile, statistics)
    }
}

#[cfg(test)]
#[path = "ingest_tests.rs"]
mod tests;

#[cfg(test)]
mod deferred_tests;

#[cfg(test)]
mod idle_tests;

#[cfg(test)]
mod lives_tests;
