//! Folding the past of a profile that grows for hours: less is known of it, but sums stay right.

use std::collections::{HashMap, HashSet};

use crate::frame::{Frame, Truncation};
use crate::life::Lives;
use crate::process::{Process, ProcessId, Thread, ThreadId};
use crate::profile::Profile;
use crate::registers::RegisterSamples;
use crate::sample::{Samples, Sums};
use crate::stack::{StackId, Stacks};
use crate::strings::StringId;
use crate::table::{Id, Table};

/// What is left of the past.
pub struct Past<'a> {
    /// Samples at the end that stay as they are.
    pub kept: usize,
    /// Times, in order, that sums are still wanted between: of samples that no such time parts and that differ in nothing but time
    /// and processor one is left, with the weight of all.
    pub times: &'a [u64],
    /// Processes that go on. The others become one for each executable, with a thread for each name.
    pub running: &'a HashSet<ProcessId>,
    /// Most nodes of their stacks. Where there are more, the rarest calls become [`Truncation::Folded`] in those that made them.
    pub nodes: usize,
}

impl Profile {
    /// Folds all samples but the last. Stacks, threads, processes and mappings that no sample has any more go as well, and all lives and registers.
    /// Strings, files, frames and their names keep their ids; the other rows get new ones.
    pub fn fold(&mut self, past: &Past<'_>) -> Renumbered {
        let first = self.samples.len().saturating_sub(past.kept);
        let old = std::mem::take(&mut self.samples);
        let marker = self.frames.add(Frame::marker(Truncation::Folded, None));
        let common = Common::new(&self.stacks, &old, first, past.nodes);
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
                if outer == Some(stack) { new } else { Some(renumber.new_stacks.add(new, marker)) }
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

/// The new ids of rows that are still there.
pub struct Renumbered {
    /// Of threads.
    pub threads: HashMap<ThreadId, ThreadId>,
    /// Of processes.
    pub processes: HashMap<ProcessId, ProcessId>,
}

/// The nodes of stacks that are not folded: those of samples that are kept, and of the others those that weigh most. A caller
/// weighs no less than what it called, so that a node's callers are among them.
struct Common {
    weights: Vec<u64>,
    least: u64,
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
        // Callers come before what they call.
        for at in (0..weights.len()).rev() {
            if let Some(caller) = stacks.node(StackId::from_index(at)).caller {
                weights[caller.index()] = weights[caller.index()].saturating_add(weights[at]);
            }
        }
        let mut of_the_past: Vec<u64> =
            weights.iter().copied().filter(|&weight| weight > 0 && weight < u64::MAX).collect();
        let least = match of_the_past.len().checked_sub(nodes + 1) {
            // Only what weighs more than the heaviest that there is no room for.
            Some(last) => of_the_past.select_nth_unstable(last).1.saturating_add(1),
            None => 0,
        };
        Self { weights, least }
    }

    /// How much of a stack is not folded, from its root on.
    fn part_of(&self, stacks: &Stacks, stack: StackId) -> Option<StackId> {
        let mut at = Some(stack);
        while let Some(id) = at.filter(|id| self.weights[id.index()] < self.least) {
            at = stacks.node(id).caller;
        }
        at
    }
}

/// Rows that are kept, and what their numbers were.
#[derive(Default)]
struct Renumber {
    stacks: Vec<Option<StackId>>,
    new_stacks: Stacks,
    threads: HashMap<ThreadId, ThreadId>,
    new_threads: Table<ThreadId, Thread>,
    processes: HashMap<ProcessId, ProcessId>,
    new_processes: Table<ProcessId, Process>,
    /// By executable those that stand for all that ended, and by name their threads.
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

    /// The thread that stands for those of its name in processes that ended and ran the same.
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
        // There was at least the stack itself to be found or made.
        caller.unwrap_or(old)
    }
}
