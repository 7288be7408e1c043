//! Lives put into a tree of programs: which program each life counts for, and who started it.
//!
//! - A process counts for the program that it execs from its fork on: the moments before the exec are part of what
//!   starting that program costs.
//! - Unless it forks on its own in between, as a subshell does that runs a command and execs the next: then it is a
//!   process of its parent's program, *forked*, and the exec'd program is below it.
//! - A program started by the same program in the same way is one line, however often it ran.

use std::collections::HashMap;

use plumb_profile::{Begin, Id, Life, LifeEnd, ProcessId, Profile, StringId};

/// Levels of the tree. What is deeper (recursion) is put beside the last level.
const MAX_DEPTH: u32 = 64;

/// A line of the tree in the making: a program, started by the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    pub(super) parent: Option<usize>,
    pub(super) exe: StringId,
    pub(super) comm: StringId,
    /// Forked, and never exec'd.
    pub(super) forked: bool,
}

/// A process of a branch: one life, and the moments before its exec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: Option<u64>,
    /// Processor time that the kernel accounted for it.
    pub(super) cpu_ns: Option<u64>,
    /// The process ran another program before, and was counted for that.
    pub(super) is_same_process: bool,
}

/// The lives of a profile, as a tree.
pub(super) struct Family {
    /// The lives; of a profile without any, one for each process that was sampled.
    pub(super) lives: Vec<Life>,
    /// The branch of each life.
    pub(super) branch_of: Vec<usize>,
    /// Whether a life is only the moments between a fork and an exec.
    pub(super) is_before_exec: Vec<bool>,
    /// Per life the children it forked, in the order of their beginnings.
    pub(super) children: Vec<Vec<usize>>,
    /// The branches; a parent comes before its children.
    pub(super) branches: Vec<Branch>,
    /// Per process of the profile its life.
    pub(super) life_of_process: Vec<Option<usize>>,
    /// Per life the life that its process had before.
    previous: Vec<Option<usize>>,
}

impl Family {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut lives = profile.lives.rows().to_vec();
        let mut life_of_process = vec![None; profile.processes.len()];
        for (index, life) in lives.iter().enumerate() {
            if let Some(process) = life.process {
                life_of_process[process.index()] = Some(index);
            }
        }
        let mut names: HashMap<ProcessId, StringId> = HashMap::new();
        for thread in profile.threads.rows() {
            names.entry(thread.process).or_insert(thread.comm);
        }
        for (id, process) in profile.processes.iter() {
            if life_of_process[id.index()].is_none() && process.pid != 0 {
                life_of_process[id.index()] = Some(lives.len());
                let comm = names.get(&id).copied().unwrap_or(profile.strings.empty());
                lives.push(unrecorded(profile, id, comm));
            }
        }
        let (previous, next) = neighbours(&lives);
        let mut children = vec![Vec::new(); lives.len()];
        for (index, life) in lives.iter().enumerate().filter(|(_, life)| life.begin == Begin::Fork) {
            if let Some(parent) = life.parent {
                children[parent.index()].push(index);
            }
        }
        for list in &mut children {
            list.sort_by_key(|&child| lives[child].start_ns);
        }
        let is_before_exec = (0..lives.len())
            .map(|index| {
                lives[index].begin == Begin::Fork && next[index].is_some() && children[index].is_empty()
            })
            .collect();
        let mut family = Family {
            branch_of: vec![usize::MAX; lives.len()],
            lives,
            is_before_exec,
            children,
            branches: Vec::new(),
            life_of_process,
            previous,
        };
        family.grow();
        family
    }

    /// Finds the branch of every life. A life's parent and previous life come before it.
    fn grow(&mut self) {
        let mut known: HashMap<Branch, usize> = HashMap::new();
        let mut depths: Vec<u32> = Vec::new();
        for index in 0..self.lives.len() {
            if self.is_before_exec[index] {
                continue;
            }
            let life = &self.lives[index];
            let previous = self.previous[index];
            let starter = match previous.filter(|&previous| !self.is_before_exec[previous]) {
                Some(previous) => Some(self.branch_of[previous]),
                // A parent that has only the moments before an exec has no children.
                None => life.parent.map(|parent| self.branch_of[parent.index()]),
            };
            let mut starter = starter.filter(|&starter| starter != usize::MAX);
            let forked = life.begin == Begin::Fork;
            let mut branch = Branch { parent: starter, exe: life.exe, comm: life.comm, forked };
            if let Some(at) = starter {
                let Branch { exe, comm, .. } = self.branches[at];
                // Subshells of subshells are one line.
                let is_same = forked && self.branches[at].forked && (exe, comm) == (life.exe, life.comm);
                if is_same || depths[at] + 1 >= MAX_DEPTH {
                    starter = self.branches[at].parent;
                }
                branch.parent = starter;
            }
            let next = self.branches.len();
            let at = *known.entry(branch).or_insert(next);
            if at == next {
                depths.push(starter.map_or(0, |starter| depths[starter] + 1));
                self.branches.push(branch);
            }
            self.branch_of[index] = at;
            if let Some(previous) = previous.filter(|&previous| self.is_before_exec[previous]) {
                self.branch_of[previous] = at;
            }
        }
    }

    /// The process that a life stands for. `None` for the moments before an exec, which are part of the next life.
    pub(super) fn run(&self, index: usize) -> Option<Run> {
        if self.is_before_exec[index] {
            return None;
        }
        let life = &self.lives[index];
        let previous = self.previous[index];
        let before = previous.filter(|&previous| self.is_before_exec[previous]);
        let start_ns = before.and_then(|before| self.lives[before].start_ns).or(life.start_ns);
        let is_same_process = previous.is_some() && before.is_none();
        let before_ns = before.map_or(Some(0), |before| self.lives[before].cpu_ns);
        let cpu_ns = life.cpu_ns.zip(before_ns).map(|(own, before)| own.saturating_add(before));
        Some(Run { start_ns, end_ns: life.end_ns, cpu_ns, is_same_process })
    }
}

/// Stands for a life that nobody recorded.
fn unrecorded(profile: &Profile, id: ProcessId, comm: StringId) -> Life {
    let process = &profile.processes[id];
    Life {
        pid: process.pid,
        parent: None,
        exe: process.exe,
        comm,
        begin: Begin::Running,
        end: LifeEnd::Running,
        start_ns: None,
        end_ns: None,
        cpu_ns: None,
        peak_rss_bytes: None,
        process: Some(id),
    }
}

/// Per life the one before and the one after it in the same process, where an exec parts them.
fn neighbours(lives: &[Life]) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let (mut previous, mut next) = (vec![None; lives.len()], vec![None; lives.len()]);
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (index, life) in lives.iter().enumerate() {
        if let Some(before) = last.insert(life.pid, index)
            && life.begin == Begin::Exec
            && lives[before].end == LifeEnd::Exec
        {
            (previous[index], next[before]) = (Some(before), Some(index));
        }
    }
    (previous, next)
}
