//! From perf records to a profile: who ran, what was mapped where, and the unwound stack of each sample.
//!
//! Records come in the order of their time, whether from a ring or from a perf.data file. The profile that comes
//! out holds addresses only. Not here: reading rings, sorting records, parsing file headers, symbols.

mod code;
mod exec;
mod frames;
mod intern;
mod kernel;
mod live;
mod lives;
mod memory;
mod off_cpu;
mod options;
mod program;
mod queues;
mod sample;
mod scan;
mod script;
mod sideband;
mod spaces;
mod spent;
mod statistics;
mod stitch;
mod stopped;
mod tasks;
mod text;
mod track;
mod user;
mod walked;
mod wire;

pub use memory::ProcessMemory;
pub use options::{Filter, Source};
pub use statistics::Statistics;

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use linux_perf_event_reader::{RawData, RawEventRecord, RecordType, constants as perf};
use plumb_process::Tree;
use plumb_profile::{DsoId, Event, EventId, FrameId, Id, Past, ProcessId, Profile, StackId};
use plumb_table_cache::{TableCache, TableLoader};
use plumb_unwind::Walked;
use rustc_hash::FxHashMap;

use code::Code;
use kernel::Kernel;
use spaces::Spaces;
use tasks::Tasks;
use track::BuildIds;
use wire::{Damaged, Reader};

/// Builds a profile from records.
#[derive(Debug)]
pub struct Ingest {
    source: Source,
    filter: Filter,
    ways: options::Ways,
    arrivals: program::Arrivals,
    profile: Profile,
    statistics: Statistics,
    /// By event, in their order: samples so far, those that are not kept and those that were counted elsewhere included.
    samples_of: Vec<u64>,
    tree: Tree,
    tasks: Tasks,
    spaces: Spaces,
    code: Code,
    kernel: Kernel,
    scripts: script::Names,
    build_ids: BuildIds,
    /// Time of the sample at hand.
    now_ns: u64,
    exits: track::Exits,
    /// How many of the used mappings of its space a process row has in the profile already.
    noted: FxHashMap<ProcessId, usize>,
    /// When was looked at how much memory processes have.
    looks: lives::Looks,
    /// Processes of which something was mapped over another mapping.
    remapped: Vec<u32>,
    // Buffers that are kept from sample to sample.
    walked: Vec<Walked>,
    leaf_first: Vec<FrameId>,
    /// The stack that the last of `leaf_first` was called from, if that is not the root.
    base: Option<StackId>,
    /// So many of the outermost frames are those of the thread's last sample, and not in `leaf_first`.
    kept: usize,
    joined: Vec<u8>,
}

impl Ingest {
    /// An ingest of records from `source` that keeps the samples that `filter` lets through.
    pub fn new(source: Source, filter: Filter) -> Self {
        let mut tree = Tree::default();
        if let Filter::Tree(pids) = &filter {
            pids.iter().for_each(|&pid| tree.follow(pid));
        }
        let kernel = match source {
            Source::Live => Kernel::of_this_machine(),
            Source::File => Kernel::default(),
        };
        let mut ingest = Self {
            source,
            filter,
            ways: options::Ways::default(),
            arrivals: program::Arrivals::default(),
            profile: Profile::default(),
            statistics: Statistics::default(),
            samples_of: Vec::new(),
            tree,
            tasks: Tasks::default(),
            spaces: Spaces::default(),
            code: Code::default(),
            kernel,
            scripts: script::Names::default(),
            build_ids: BuildIds::default(),
            now_ns: 0,
            exits: track::Exits::default(),
            noted: FxHashMap::default(),
            looks: lives::Looks::default(),
            remapped: Vec::new(),
            walked: Vec::new(),
            leaf_first: Vec::new(),
            base: None,
            kept: 0,
            joined: Vec::new(),
        };
        ingest.tasks.rename(0, 0, tasks::Name::new(b"swapper"));
        ingest
    }

    /// Declares an event that samples may belong to: its name (`cpu-clock`) and the unit of its period (`ns`).
    pub fn add_event(&mut self, name: &str, unit: &str) -> EventId {
        let (name, unit) = (self.profile.strings.add(name), self.profile.strings.add(unit));
        self.samples_of.push(0);
        self.profile.events.push(Event { name, unit })
    }

    /// Samples of an event so far, those that are not kept included.
    pub fn samples_of(&self, event: EventId) -> u64 {
        self.samples_of.get(event.index()).copied().unwrap_or(0)
    }

    fn came(&mut self, event: EventId, samples: u64) {
        if let Some(so_far) = self.samples_of.get_mut(event.index()) {
            *so_far += samples;
        }
    }

    /// Has samples of an event count `each` where they don't say themselves what they count. Otherwise these count 1.
    pub fn weigh_each(&mut self, event: EventId, each: u64) {
        self.ways.weights.insert(event, options::Weight::Each(each));
    }

    /// Has samples of an event in the idle task kept, which otherwise no recording of this machine has ([`Source::Live`]).
    pub fn keep_idle(&mut self, event: EventId) {
        self.ways.keeps_idle.insert(event);
    }

    /// Has samples of an event, which a program in the kernel writes, count what that says. `way_in`: the functions through which it is
    /// called, if the samples have kernel stacks.
    pub fn weigh_as_said(&mut self, event: EventId, way_in: Option<Arc<[Range<u64>]>>) {
        self.ways.weights.insert(event, options::Weight::Said);
        self.ways.ways_in.extend(way_in.map(|way_in| (event, way_in)));
    }

    /// Follows `pid` and whatever it forks from now on. Has no effect on what is kept under [`Filter::All`].
    pub fn follow(&mut self, pid: u32) {
        self.tree.follow(pid);
    }

    /// The followed processes, also those that have ended.
    pub fn followed(&self) -> impl Iterator<Item = u32> {
        self.tree.followed()
    }

    /// Tells the build id of the file that records call `path`, as a perf.data file's own table does, before the
    /// records that use it. For the kernel `path` is `[kernel.kallsyms]`.
    pub fn build_id(&mut self, path: &[u8], id: &[u8]) {
        match path {
            b"[vdso]" => self.code.set_vdso_build_id(id),
            _ if path.starts_with(b"[kernel.kallsyms]") => self.kernel.set_build_id(id),
            _ => {
                self.build_ids.insert(path.into(), id.into());
            }
        }
    }

    /// Has rules found by tables that were kept, where many are looked up, and has such tables made.
    pub fn use_tables(&mut self, kept: TableCache) {
        self.code.use_tables(TableLoader::new(kept));
    }

    /// Looks after tables and unwind information, from time to time: no more than so many bytes of it are kept that are not in use.
    pub fn look_at_tables(&mut self, most_bytes: usize) {
        self.code.look_at_tables();
        self.code.bound_sometimes(most_bytes);
        if self.source == Source::Live && self.code.is_closing_due() {
            self.code.close_all_but(&self.spaces.files());
        }
    }

    /// Takes the next record. `event` is the one that it belongs to (by sample id or by ring).
    /// A record that can't be read is counted in [`Statistics::damaged_records`].
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
            self.statistics.damaged_records += 1;
        }
        self.joined = joined;
    }

    fn dispatch(&mut self, event: EventId, record: &RawEventRecord<'_>, bytes: &[u8]) -> Result<(), Damaged> {
        let reader = Reader::new(bytes, &record.parse_info);
        let misc = record.misc;
        // Recorders make up records of what ran before without a time.
        let time_ns = || record.common_data().ok().and_then(|data| data.timestamp).filter(|&time| time != 0);
        match record.record_type {
            RecordType::SAMPLE => {
                let sample = {
                    let weight = self.ways.weights.get(&event).copied().unwrap_or(options::Weight::Each(1));
                    wire::Sample::decode(bytes, misc, weight, &record.parse_info)?
                };
                self.sample(event, &sample);
            }
            RecordType::MMAP2 => self.mmap(&wire::Mmap::decode2(reader, misc)?, misc),
            RecordType::MMAP => self.mmap(&wire::Mmap::decode(reader, misc)?, misc),
            RecordType::COMM => self.comm(
                &wire::Comm::decode(reader)?,
                misc & perf::PERF_RECORD_MISC_COMM_EXEC != 0,
                time_ns(),
            ),
            RecordType::FORK => self.fork(
                &wire::Task::decode(reader)?,
                misc & perf::PERF_RECORD_MISC_FORK_EXEC != 0,
                time_ns(),
            ),
            RecordType::EXIT => {
                let cpu = record.common_data().ok().and_then(|data| data.cpu);
                self.exit(&wire::Task::decode(reader)?, cpu, time_ns())
            }
            RecordType::LOST => self.statistics.lost_records += wire::lost(reader)?,
            RecordType::LOST_SAMPLES => self.statistics.lost_samples += wire::lost_samples(reader)?,
            _ => {}
        }
        Ok(())
    }

    /// Counts samples that the kernel dropped, where the caller learns of them by other means than records.
    pub fn lost(&mut self, samples: u64) {
        self.statistics.lost_samples += samples;
    }

    /// What was seen so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The profile so far. Its samples are in the order in which they came, and the stacks of some may still change.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The profile so far, for the caller to fill in what it knows. With [`Source::File`], set `meta.arch` before
    /// the first record: stacks of other architectures than x86_64 are not unwound.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Files of frames that were deleted or replaced since they were mapped, held open: symbols have to be read through
    /// these (`/proc/self/fd/N`).
    pub fn vanished(&self) -> Vec<(DsoId, File)> {
        self.code.vanished()
    }

    /// Whether the records' machine is one whose stacks can be unwound.
    fn can_unwind(&self) -> bool {
        matches!(self.profile.meta.arch.as_str(), "" | "x86_64")
    }

    /// Folds all samples but the last `kept` ([`Profile::fold`]). Processes go on in their rows, if they have any left.
    pub fn fold(&mut self, kept: usize, times: &[u64], nodes: usize) {
        let threads: Vec<u32> = self.tasks.threads.keys().copied().collect();
        threads.into_iter().for_each(|tid| self.settle_cut(tid));
        let running = &self.tasks.processes.values().filter_map(|process| process.row).collect();
        let new = self.profile.fold(&Past { kept, times, running, nodes });
        for thread in self.tasks.threads.values_mut() {
            thread.row = thread.row.and_then(|row| new.threads.get(&row).copied());
            thread.stitcher = None;
            thread.last = Default::default();
            thread.pending.clear();
        }
        for process in self.tasks.processes.values_mut() {
            process.row = process.row.and_then(|row| new.processes.get(&row).copied());
            process.life = None;
        }
        self.tasks.accounts.forget();
        self.noted.clear();
    }

    /// Forgets all stacks and samples, which may be taken out of the profile next.
    pub fn end_part(&mut self) {
        let threads: Vec<u32> = self.tasks.threads.keys().copied().collect();
        threads.into_iter().for_each(|tid| self.settle_cut(tid));
        for thread in self.tasks.threads.values_mut() {
            thread.last = Default::default();
            thread.pending.clear();
        }
    }

    /// The finished profile: samples sorted by time, mappings that frames fall into.
    pub fn finish(mut self) -> (Profile, Statistics) {
        let threads: Vec<u32> = self.tasks.threads.keys().copied().collect();
        threads.into_iter().for_each(|tid| self.settle_cut(tid));
        self.drop_parts_of_accounts();
        self.weigh_samples();
        self.profile.samples.sort_by_time();
        (self.profile, self.statistics)
    }
}

#[cfg(test)]
#[path = "ingest_tests.rs"]
mod tests;

#[cfg(test)]
mod idle_tests;

#[cfg(test)]
mod lives_tests;
