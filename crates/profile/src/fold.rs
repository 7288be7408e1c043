//! Folds the older part of a profile that grows for hours: details are dropped, sums stay correct.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::frame::{Frame, FrameId, Truncation};
use crate::life::Lives;
use crate::process::{Process, ProcessId, Thread, ThreadId};
use crate::profile::Profile;
use crate::registers::RegisterSamples;
use crate::sample::{Samples, Sums};
use crate::stack::{StackId, Stacks};
use crate::strings::StringId;
use crate::table::{Id, Table};

/// The parameters of folding.
pub struct Past<'a> {
    /// Number of samples at the end that are not folded.
    pub kept: usize,
    /// Sorted times between which sums must stay available: samples between two of them that differ only in time
    /// and CPU are merged into one with their total weight.
    pub times: &'a [u64],
    /// Processes still running. The others are merged into one per executable, with a thread per name.
    pub running: &'a HashSet<ProcessId>,
    /// Largest number of nodes of the folded stacks. Beyond it, the rarest calls are replaced by [`Truncation::Folded`]. The innermost frame of
    /// such a stack is kept after the marker, for half as many: own time stays with the function that ran.
    pub nodes: usize,
}

impl Profile {
    /// Folds all samples except the last. Also drops stacks, threads, processes and mappings without samples, and all lives and registers.
    /// Strings, files, frames and their names keep their ids; other rows get new ones.
    pub fn fold(&mut self, past: &Past<'_>) -> Renumbered {
        let first = self.samples.len().saturating_sub(past.kept);
        let old = std::mem::take(&mut self.samples);
        let marker = self.frames.add(Frame::marker(Truncation::Folded, None));
        let common = Common::new(&self.stacks, &old, first, past.nodes);
        let innermost = Innermost::new(&self.stacks, (&old, first), &common, (marker, past.nodes / 2));
        let mut renumber = Renumber { stacks: vec![None; self.stacks.len()], ..Renumber::default() };
        let mut sums: HashMap<usize, Sums> = HashMap::new();
        let mut stretches = Vec::new();
        for mut sample in (0..first).filter_map(|index| old.get(index)) {
            let process = self.threads[sample.thread].process;
            sample.thread = match past.running.contains(&process) {
                true => renumber.thread(self, sample.thread),
                false => renumber.ended(self, sample.thread),
            };
            sample.stack = sample.stack.and_then(|stack| {
                let outer = common.part_of(&self.stacks, stack);
                let new = outer.map(|outer| renumber.stack(&self.stacks, outer));
                if outer == Some(stack) {
                    return new;
                }
                // Stacks folded before may be folded further.
                let is_marked = outer.is_some_and(|outer| self.stacks.node(outer).frame == marker);
                let folded =
                    new.filter(|_| is_marked).unwrap_or_else(|| renumber.new_stacks.add(new, marker));
                let frame = innermost.of(&self.stacks, outer, stack);
                Some(frame.map_or(folded, |frame| renumber.new_stacks.add(Some(folded), frame)))
            });
            let stretch = past.times.partition_point(|&time| time <= sample.time_ns);
            let sums = sums.entry(stretch).or_insert_with(|| {
                stretches.push(stretch);
                Sums::default()
            });
            sums.add(sample);
        }
        let mut samples = Samples::default();
        stretches.sort_unstable();
        for sums in stretches.iter().filter_map(|stretch| sums.remove(stretch)) {
            sums.samples().iter().for_each(|sample| samples.push(sample));
        }
        for mut sample in (first..old.len()).filter_map(|index| old.get(index)) {
            sample.thread = renumber.thread(self, sample.thread);
            sample.stack = sample.stack.map(|stack| renumber.stack(&self.stacks, stack));
            samples.push(sample);
        }
        self.samples = samples;
        self.registers = RegisterSamples::default();
        self.stacks = renumber.new_stacks;
        self.threads = renumber.new_threads;
        self.processes = renumber.new_processes;
        let processes = &renumber.processes;
        self.mappings.retain_mut(|mapping| {
            let new = processes.get(&mapping.process);
            new.map(|&new| mapping.process = new).is_some()
        });
        self.lives = Lives::default();
        Renumbered { threads: renumber.threads, processes: renumber.processes }
    }
}

/// The new ids of the remaining rows.
pub struct Renumbered {
    /// New ids of threads.
    pub threads: HashMap<ThreadId, ThreadId>,
    /// New ids of processes.
    pub processes: HashMap<ProcessId, ProcessId>,
}

/// The stack nodes that are not folded: those of samples that are kept, and the heaviest of the others. A caller
/// weighs no less than its callees, so a node's callers are included.
struct Common {
    weights: Vec<u64>,
    last: Option<Rank>,
}

/// The heaviest first, if equal those seen first: callers before callees.
type Rank = (Reverse<u64>, usize);

/// Returns the last of the first `most`; `None` if there are at most `most`.
fn last_of(mut ranks: Vec<Rank>, most: usize) -> Option<Rank> {
    if ranks.len() <= most {
        return None;
    }
    match most.checked_sub(1) {
        Some(last) => Some(*ranks.select_nth_unstable(last).1),
        None => Some((Reverse(u64::MAX), 0)),
    }
}

impl Common {
    fn new(stacks: &Stacks, samples: &Samples, first: usize, nodes: usize) -> Self {
        let mut weights = vec![0_u64; stacks.len()];
        for (index, sample) in samples.iter().enumerate() {
            if let Some(stack) = sample.stack {
                let weight = if index < first { sample.weight.max(1) } else { u64::MAX };
                weights[stack.index()] = weights[stack.index()].saturating_add(weight);
            }
        }
        // Callers come before callees.
        for at in (0..weights.len()).rev() {
            if let Some(caller) = stacks.node(StackId::from_index(at)).caller {
                weights[caller.index()] = weights[caller.index()].saturating_add(weights[at]);
            }
        }
        let of_the_past =
            weights.iter().enumerate().filter(|(_, weight)| **weight > 0 && **weight < u64::MAX);
        let ranks = of_the_past.map(|(node, &weight)| (Reverse(weight), node)).collect();
        Self { last: last_of(ranks, nodes), weights }
    }

    /// Returns the part of a stack, from the root, that is not folded.
    fn part_of(&self, stacks: &Stacks, stack: StackId) -> Option<StackId> {
        let mut at = Some(stack);
        let is_folded = |id: &StackId| {
            let rank = (Reverse(self.weights[id.index()]), id.index());
            self.last.is_some_and(|last| rank > last)
        };
        while let Some(id) = at.filter(is_folded) {
            at = stacks.node(id).caller;
        }
        at
    }
}

/// The innermost frames of folded stacks that are kept, by the rest of the stack: the heaviest.
struct Innermost(HashSet<(Option<StackId>, FrameId)>);

impl Innermost {
    /// Selects them; `marker` is the truncation marker and never counts as innermost frame.
    fn new(
        stacks: &Stacks,
        (samples, first): (&Samples, usize),
        common: &Common,
        (marker, most): (FrameId, usize),
    ) -> Self {
        let mut weights: HashMap<(Option<StackId>, FrameId), u64> = HashMap::new();
        for sample in (0..first).filter_map(|index| samples.get(index)) {
            let Some(stack) = sample.stack else { continue };
            let (outer, frame) = (common.part_of(stacks, stack), stacks.node(stack).frame);
            if outer != Some(stack) && frame != marker {
                let weight = weights.entry((outer, frame)).or_default();
                *weight = weight.saturating_add(sample.weight.max(1));
            }
        }
        let mut all: Vec<_> = weights.into_iter().collect();
        all.sort_unstable_by_key(|&(key, weight)| (Reverse(weight), key));
        all.truncate(most);
        Self(all.into_iter().map(|(key, _)| key).collect())
    }

    /// Returns the innermost frame to keep for a stack of which `outer` remains; `None` if it is folded too.
    fn of(&self, stacks: &Stacks, outer: Option<StackId>, stack: StackId) -> Option<FrameId> {
        let frame = stacks.node(stack).frame;
        self.0.contains(&(outer, frame)).then_some(frame)
    }
}

/// The rows that are kept, with their old numbers.
#[derive(Default)]
struct Renumber {
    stacks: Vec<Option<StackId>>,
    new_stacks: Stacks,
    threads: HashMap<ThreadId, ThreadId>,
    new_threads: Table<ThreadId, Thread>,
    processes: HashMap<ProcessId, ProcessId>,
    new_processes: Table<ProcessId, Process>,
    /// For each executable the process that replaces all ended ones, and for each name its thread.
    ended: HashMap<StringId, ProcessId>,
    ended_threads: HashMap<(ProcessId, StringId), ThreadId>,
}

impl Renumber {
    fn thread(&mut self, profile: &Profile, old: ThreadId) -> ThreadId {
        if let Some(&new) = self.threads.get(&old) {
            return new;
        }
        let mut thread = profile.threads[old].clone();
        let process = thread.process;
        let new_processes = &mut self.new_processes;
        thread.process = *self
            .processes
            .entry(process)
            .or_insert_with(|| new_processes.push(profile.processes[process].clone()));
        let new = self.new_threads.push(thread);
        self.threads.insert(old, new);
        new
    }

    /// Returns the thread that replaces those of its name in ended processes of the same executable.
    fn ended(&mut self, profile: &Profile, old: ThreadId) -> ThreadId {
        let Thread { process, comm, .. } = profile.threads[old];
        let exe = profile.processes[process].exe;
        let new_processes = &mut self.new_processes;
        let process = *self
            .ended
            .entry(exe)
            .or_insert_with(|| new_processes.push(Process { pid: Process::ENDED, ppid: 0, exe }));
        let new_threads = &mut self.new_threads;
        let thread = || new_threads.push(Thread { process, tid: Process::ENDED, comm });
        *self.ended_threads.entry((process, comm)).or_insert_with(thread)
    }

    fn stack(&mut self, stacks: &Stacks, old: StackId) -> StackId {
        let mut missing = Vec::new();
        let mut caller = None;
        let mut at = Some(old);
        while let Some(id) = at {
            if let Some(new) = self.stacks[id.index()] {
                caller = Some(new);
                break;
            }
            missing.push(id);
            at = stacks.node(id).caller;
        }
        for id in missing.into_iter().rev() {
            let new = self.new_stacks.add(caller, stacks.node(id).frame);
            self.stacks[id.index()] = Some(new);
            caller = Some(new);
        }
        // At least the stack itself was found or created.
        caller.unwrap_or(old)
    }
}
