//! The tree of programs: the program that each process life is counted for, and its parent.
//!
//! - A process counts for the program that it execs, from its fork on: the moments before the exec are part of the
//!   cost of starting that program.
//! - Exception: it forks in between, as a subshell does that runs a command and execs the next: then it is a
//!   process of its parent's program, *forked*, and the exec'd program is below it.
//! - A program started by the same program in the same way is one line, however often it ran.
//! - Programs that a process execs later are below its first one, however long the chain; if it execs the first program
//!   again, the process continues on the same line.

use std::collections::HashMap;

use plumb_profile::{Begin, Id, Life, LifeEnd, ProcessId, Profile, StringId};

/// Depth limit of the tree. Deeper programs (recursion) are siblings of the last level.
const MAX_DEPTH: u32 = 64;

/// A line of the tree: a program with a given parent program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    pub(super) parent: Option<usize>,
    pub(super) exe: StringId,
    pub(super) comm: StringId,
    /// Forked, without an exec.
    pub(super) forked: bool,
}

/// A process in a branch: one life, including the moments before its exec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: Option<u64>,
    /// CPU time that the kernel accounted for it.
    pub(super) cpu_ns: Option<u64>,
    /// The first life of its process.
    pub(super) process: usize,
    /// The first life of its process in the same branch.
    pub(super) first_here: usize,
}

/// The process lives of a profile, as a tree.
pub(super) struct Family {
    /// The lives; for a profile without any, one per sampled process.
    pub(super) lives: Vec<Life>,
    /// The branch of each life.
    pub(super) branch_of: Vec<usize>,
    /// Whether a life is only the moments between a fork and an exec.
    pub(super) is_before_exec: Vec<bool>,
    /// For each life, the children that it forked, in order of their start.
    pub(super) children: Vec<Vec<usize>>,
    /// The branches; a parent comes before its children.
    pub(super) branches: Vec<Branch>,
    /// For each process of the profile, its life.
    pub(super) life_of_process: Vec<Option<usize>>,
    /// For each life, the previous life of its process.
    previous: Vec<Option<usize>>,
    /// For each life, the first one of its process, not counting the moments before an exec.
    first: Vec<usize>,
    /// For each life, the first one of its process in the same branch.
    first_here: Vec<usize>,
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
            first: (0..lives.len()).collect(),
            first_here: (0..lives.len()).collect(),
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

    /// Assigns a branch to every life. A life's parent and previous life come before it.
    fn grow(&mut self) {
        let mut tree = Tree::default();
        // The first life of a process in a branch.
        let mut entries: HashMap<(usize, usize), usize> = HashMap::new();
        for index in 0..self.lives.len() {
            if self.is_before_exec[index] {
                continue;
            }
            let previous = self.previous[index];
            let ran = previous.filter(|&previous| !self.is_before_exec[previous]);
            let at = match ran {
                Some(ran) => {
                    self.first[index] = self.first[ran];
                    tree.add_exec(&self.lives[index], self.branch_of[self.first[ran]])
                }
                None => {
                    // A parent that consists only of the moments before an exec has no children.
                    let starter = self.lives[index].parent.map(|parent| self.branch_of[parent.index()]);
                    tree.add(&self.lives[index], starter.filter(|&starter| starter != usize::MAX))
                }
            };
            self.branch_of[index] = at;
            self.first_here[index] = *entries.entry((self.first[index], at)).or_insert(index);
            if ran.is_none()
                && let Some(previous) = previous
            {
                self.branch_of[previous] = at;
            }
        }
        self.branches = tree.branches;
    }

    /// Returns the process that a life represents. `None` for the moments before an exec, which are part of the next life.
    pub(super) fn run(&self, index: usize) -> Option<Run> {
        if self.is_before_exec[index] {
            return None;
        }
        let life = &self.lives[index];
        let previous = self.previous[index];
        let before = previous.filter(|&previous| self.is_before_exec[previous]);
        let start_ns = before.and_then(|before| self.lives[before].start_ns).or(life.start_ns);
        let before_ns = before.map_or(Some(0), |before| self.lives[before].cpu_ns);
        let cpu_ns = life.cpu_ns.zip(before_ns).map(|(own, before)| own.saturating_add(before));
        let (process, first_here) = (self.first[index], self.first_here[index]);
        Some(Run { start_ns, end_ns: life.end_ns, cpu_ns, process, first_here })
    }
}

/// The branches being built.
#[derive(Default)]
struct Tree {
    branches: Vec<Branch>,
    depths: Vec<u32>,
    known: HashMap<Branch, usize>,
}

impl Tree {
    /// Returns the branch of a life that `starter` started, adding it if needed.
    fn add(&mut self, life: &Life, starter: Option<usize>) -> usize {
        let forked = life.begin == Begin::Fork;
        let mut parent = starter;
        if let Some(at) = starter {
            let Branch { exe, comm, .. } = self.branches[at];
            // Subshells of subshells are one line.
            let is_same = forked && self.branches[at].forked && (exe, comm) == (life.exe, life.comm);
            if is_same || self.depths[at] + 1 >= MAX_DEPTH {
                parent = self.branches[at].parent;
            }
        }
        let branch = Branch { parent, exe: life.exe, comm: life.comm, forked };
        let next = self.branches.len();
        let at = *self.known.entry(branch).or_insert(next);
        if at == next {
            self.depths.push(parent.map_or(0, |parent| self.depths[parent] + 1));
            self.branches.push(branch);
        }
        at
    }

    /// Returns the branch of a program exec'd by a process whose first branch is `first`.
    fn add_exec(&mut self, life: &Life, first: usize) -> usize {
        let Branch { exe, comm, forked, .. } = self.branches[first];
        if !forked && (exe, comm) == (life.exe, life.comm) { first } else { self.add(life, Some(first)) }
    }
}

/// Creates a life for a process of which none was recorded.
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

/// Returns the previous and the next life of each life in the same process, as separated by execs.
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
