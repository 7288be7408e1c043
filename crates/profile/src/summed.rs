//! Compact copies of a profile with only the rows in use: the sums of a time range, to be analyzed elsewhere while the large profile grows,
//! and the whole, to replace a profile that has grown.
//!
//! Invariant: weights of samples are those of the original. Elsewhere: folding old samples (`fold`).

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use crate::dso::{Dso, DsoId};
use crate::event::Event;
use crate::frame::{Frame, FrameId};
use crate::mapping::Mapping;
use crate::process::{Process, ProcessId, Thread, ThreadId};
use crate::profile::Profile;
use crate::sample::{Sample, Sums};
use crate::stack::StackId;
use crate::strings::StringId;
use crate::symbol::{Function, FunctionId, Line};
use crate::table::FastHasher;

type Map<K> = HashMap<K, K, BuildHasherDefault<FastHasher>>;

impl Profile {
    /// Returns the samples from `from_ns` to before `to_ns`, on their clock, aggregated: one per thread, event and stack, with the
    /// total weight and the time and CPU of the first. Rows that they do not need are left out,
    /// as are mappings and lives.
    pub fn summed(&self, from_ns: u64, to_ns: u64) -> Profile {
        let mut sums = Sums::default();
        let in_time = |sample: &Sample| (from_ns..to_ns).contains(&sample.time_ns);
        self.samples.iter().filter(in_time).for_each(|sample| sums.add(sample));
        let mut copy = Copying::new(self);
        sums.samples().iter().for_each(|sample| copy.sample(&sample));
        copy.to
    }

    /// Returns the same samples, and the mappings of their files in their processes, without any other row: strings, files, frames, functions and
    /// stacks without samples are left out. All ids except events' change. Lives and registers are left out.
    pub fn compacted(&self) -> Profile {
        let mut copy = Copying::new(self);
        self.samples.iter().for_each(|sample| copy.sample(&sample));
        copy.mappings();
        copy.to
    }

    /// Returns a profile with the same events, no samples, and the rows that the given samples need, including the mappings of their files in their
    /// processes. The samples' ids are changed to those of the copy.
    pub fn with_rows_of<'s>(&self, samples: impl IntoIterator<Item = &'s mut Sample>) -> Profile {
        let mut copy = Copying::new(self);
        for sample in samples {
            sample.thread = copy.thread(sample.thread);
            sample.stack = sample.stack.and_then(|stack| copy.stack(stack));
        }
        copy.mappings();
        copy.to
    }
}

/// New row numbers in the copy.
#[derive(Default)]
struct New {
    threads: Map<ThreadId>,
    processes: Map<ProcessId>,
    stacks: Map<StackId>,
    frames: Map<FrameId>,
    dsos: Map<DsoId>,
    functions: Map<FunctionId>,
}

/// Copies rows with all rows that they refer to, each once.
struct Copying<'p> {
    from: &'p Profile,
    to: Profile,
    new: New,
}

impl<'p> Copying<'p> {
    /// Starts with the metadata and all events, which keep their ids.
    fn new(from: &'p Profile) -> Self {
        let mut copy = Copying { from, to: Profile::default(), new: New::default() };
        copy.to.meta = from.meta.clone();
        for event in from.events.rows() {
            let (name, unit) = (copy.string(event.name), copy.string(event.unit));
            copy.to.events.push(Event { name, unit });
        }
        copy
    }

    fn sample(&mut self, sample: &Sample) {
        let stack = sample.stack.and_then(|stack| self.stack(stack));
        let thread = self.thread(sample.thread);
        self.to.samples.push(Sample { thread, stack, ..*sample });
    }

    /// Copies the mappings, each once, of files and processes copied so far.
    fn mappings(&mut self) {
        let mut known = HashSet::new();
        for mapping in self.from.mappings.iter().filter(|mapping| known.insert(**mapping)) {
            if let Some(&process) = self.new.processes.get(&mapping.process)
                && let Some(&dso) = self.new.dsos.get(&mapping.dso)
            {
                self.to.mappings.push(Mapping { process, dso, ..*mapping });
            }
        }
    }

    fn string(&mut self, old: StringId) -> StringId {
        self.to.strings.add(self.from.strings.get(old))
    }

    fn thread(&mut self, old: ThreadId) -> ThreadId {
        if let Some(&new) = self.new.threads.get(&old) {
            return new;
        }
        let thread = &self.from.threads[old];
        let (process, comm) = (self.process(thread.process), self.string(thread.comm));
        let new = self.to.threads.push(Thread { process, comm, tid: thread.tid });
        self.new.threads.insert(old, new);
        new
    }

    fn process(&mut self, old: ProcessId) -> ProcessId {
        if let Some(&new) = self.new.processes.get(&old) {
            return new;
        }
        let process = &self.from.processes[old];
        let exe = self.string(process.exe);
        let new = self.to.processes.push(Process { exe, ..process.clone() });
        self.new.processes.insert(old, new);
        new
    }

    fn stack(&mut self, old: StackId) -> Option<StackId> {
        let mut missing = Vec::new();
        let (mut caller, mut at) = (None, Some(old));
        while let Some(id) = at {
            caller = self.new.stacks.get(&id).copied();
            if caller.is_some() {
                break;
            }
            missing.push(id);
            at = self.from.stacks.node(id).caller;
        }
        for id in missing.into_iter().rev() {
            let frame = self.frame(self.from.stacks.node(id).frame);
            let new = self.to.stacks.add(caller, frame);
            self.new.stacks.insert(id, new);
            caller = Some(new);
        }
        caller
    }

    fn frame(&mut self, old: FrameId) -> FrameId {
        if let Some(&new) = self.new.frames.get(&old) {
            return new;
        }
        let frame = self.from.frames[old];
        let dso = frame.dso.map(|dso| self.dso(dso));
        let new = self.to.frames.add(Frame { dso, ..frame });
        self.new.frames.insert(old, new);
        let from = self.from;
        let lines: Vec<Line> = from.symbols.recorded(old).iter().map(|line| self.line(line)).collect();
        if !lines.is_empty() {
            self.to.symbols.set(new, &lines);
        }
        new
    }

    fn line(&mut self, line: &Line) -> Line {
        Line { function: self.function(line.function), file: self.string(line.file), ..*line }
    }

    fn function(&mut self, old: FunctionId) -> FunctionId {
        if let Some(&new) = self.new.functions.get(&old) {
            return new;
        }
        let function = self.from.symbols.functions[old];
        let new = Function {
            name: self.string(function.name),
            linkage_name: self.string(function.linkage_name),
            dso: function.dso.map(|dso| self.dso(dso)),
            start: function.start,
            source_file: self.string(function.source_file),
            start_line: function.start_line,
        };
        let new = self.to.symbols.functions.add(new);
        self.new.functions.insert(old, new);
        new
    }

    fn dso(&mut self, old: DsoId) -> DsoId {
        if let Some(&new) = self.new.dsos.get(&old) {
            return new;
        }
        let dso = &self.from.dsos[old];
        let path = self.string(dso.path);
        let new = self.to.dsos.add(Dso { path, ..dso.clone() });
        self.new.dsos.insert(old, new);
        new
    }
}
