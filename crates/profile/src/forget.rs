//! Forgetting the beginning of a profile that grows for hours.

use std::collections::HashMap;

use crate::process::{ProcessId, ThreadId};
use crate::profile::Profile;
use crate::sample::Samples;
use crate::stack::{StackId, Stacks};
use crate::table::{Id, Table};

impl Profile {
    /// Forgets all samples but the last `kept`, and with them the stacks, threads, processes and mappings that only the others
    /// have, and all lives. Strings, files, frames and their names keep their ids; the other rows get new ones.
    pub fn forget_all_but(&mut self, kept: usize) {
        let first = self.samples.len().saturating_sub(kept);
        let mut renumber = Renumber { stacks: vec![None; self.stacks.len()], ..Renumber::default() };
        let mut samples = Samples::default();
        let old = std::mem::take(&mut self.samples);
        for mut sample in (first..old.len()).filter_map(|index| old.get(index)) {
            sample.thread = renumber.thread(self, sample.thread);
            sample.stack = sample.stack.map(|stack| renumber.stack(&self.stacks, stack));
            samples.push(sample);
        }
        self.samples = samples;
        self.stacks = renumber.new_stacks;
        self.threads = renumber.new_threads;
        self.processes = renumber.new_processes;
        let processes = &renumber.processes;
        self.mappings.retain_mut(|mapping| {
            let new = processes.get(&mapping.process);
            new.map(|&new| mapping.process = new).is_some()
        });
        self.lives = Table::default();
    }
}

/// Rows that are kept, and what their numbers were.
#[derive(Default)]
struct Renumber {
    stacks: Vec<Option<StackId>>,
    new_stacks: Stacks,
    threads: HashMap<ThreadId, ThreadId>,
    new_threads: Table<ThreadId, crate::process::Thread>,
    processes: HashMap<ProcessId, ProcessId>,
    new_processes: Table<ProcessId, crate::process::Process>,
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
