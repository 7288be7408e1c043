//! The processes whose samples are kept: all, or those of a tree of processes, which grows with their forks and with awaited
//! programs.

use plumb_process::{Program, Tree};

use crate::{Filter, Source};

/// The processes whose samples are kept.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) source: Source,
    /// Whether only followed processes are kept.
    pub(crate) is_tree: bool,
    tree: Tree,
    /// A program whose processes are followed from their exec on.
    awaited: Option<Program>,
    /// Processes that have started it since the last call of `take_arrived`.
    arrived: Vec<u32>,
}

impl Scope {
    pub(crate) fn new(source: Source, filter: &Filter) -> Self {
        let mut tree = Tree::default();
        if let Filter::Tree(pids) = filter {
            pids.iter().for_each(|&pid| tree.follow(pid));
        }
        let is_tree = matches!(filter, Filter::Tree(_));
        Self { source, is_tree, tree, awaited: None, arrived: Vec::new() }
    }

    /// Whether the records come live from this machine.
    pub(crate) fn is_live(&self) -> bool {
        self.source == Source::Live
    }

    /// Whether a process matters. An unknown one may turn out to be a descendant of a followed one.
    pub(crate) fn wants(&self, pid: u32) -> bool {
        !self.is_tree || self.tree.follows(pid)
    }

    /// Follows a process and its future children.
    pub(crate) fn follow(&mut self, pid: u32) {
        self.tree.follow(pid);
    }

    /// Whether a process is followed.
    pub(crate) fn follows(&self, pid: u32) -> bool {
        self.tree.follows(pid)
    }

    /// The followed processes, including those that have ended.
    pub(crate) fn followed(&self) -> impl Iterator<Item = u32> {
        self.tree.followed()
    }

    /// Handles a fork: the child is followed if its parent is.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        self.tree.fork(parent, child);
    }

    /// Follows processes that exec this program from now on.
    pub(crate) fn await_program(&mut self, program: Program) {
        self.awaited = Some(program);
    }

    /// Processes that have started the program since the last call.
    pub(crate) fn take_arrived(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.arrived)
    }

    /// Handles a process' new name at an exec.
    pub(crate) fn meet_comm(&mut self, pid: u32, comm: &[u8]) {
        if self.awaited.as_ref().is_some_and(|program| program.is_comm(comm)) {
            self.arrive(pid);
        }
    }

    /// Handles the first file mapped as code after an exec: the program.
    pub(crate) fn meet_executable(&mut self, pid: u32, path: &[u8]) {
        if self.awaited.as_ref().is_some_and(|program| program.is_executable(path)) {
            self.arrive(pid);
        }
    }

    fn arrive(&mut self, pid: u32) {
        // A descendant of a followed process is followed already, and does not count as arrived.
        if !self.tree.follows(pid) {
            self.tree.follow(pid);
            self.arrived.push(pid);
        }
    }
}
