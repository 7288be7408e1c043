//! Whose samples are kept: everyone's, or those of a tree of processes, which grows by what they fork and by programs that are
//! waited for.

use plumb_process::{Program, Tree};

use crate::{Filter, Source};

/// Whose samples are kept.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) source: Source,
    /// Only what is followed is kept.
    pub(crate) is_tree: bool,
    tree: Tree,
    /// A program whose processes are followed from the moment that they begin to run it.
    awaited: Option<Program>,
    /// Processes that run it since they were asked for.
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

    /// Whether the records are of this machine, now.
    pub(crate) fn is_live(&self) -> bool {
        self.source == Source::Live
    }

    /// Whether a process matters. Unknown ones may turn out to be descendants of a followed one.
    pub(crate) fn wants(&self, pid: u32) -> bool {
        !self.is_tree || self.tree.follows(pid)
    }

    /// Follows a process and whatever it forks from now on.
    pub(crate) fn follow(&mut self, pid: u32) {
        self.tree.follow(pid);
    }

    /// Whether a process is followed.
    pub(crate) fn follows(&self, pid: u32) -> bool {
        self.tree.follows(pid)
    }

    /// The followed processes, also those that have ended.
    pub(crate) fn followed(&self) -> impl Iterator<Item = u32> {
        self.tree.followed()
    }

    /// A process was forked: it is followed if its parent is.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        self.tree.fork(parent, child);
    }

    /// Follows processes that exec this program from now on.
    pub(crate) fn await_program(&mut self, program: Program) {
        self.awaited = Some(program);
    }

    /// Processes that began to run it since the last call.
    pub(crate) fn take_arrived(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.arrived)
    }

    /// A process has exec'd, and has this name.
    pub(crate) fn meet_comm(&mut self, pid: u32, comm: &[u8]) {
        if self.awaited.as_ref().is_some_and(|program| program.is_comm(comm)) {
            self.arrive(pid);
        }
    }

    /// A process has exec'd, and this is the first file that is mapped as code: the program.
    pub(crate) fn meet_executable(&mut self, pid: u32, path: &[u8]) {
        if self.awaited.as_ref().is_some_and(|program| program.is_executable(path)) {
            self.arrive(pid);
        }
    }

    fn arrive(&mut self, pid: u32) {
        // One that it forked is followed with it, and is not waited for by itself.
        if !self.tree.follows(pid) {
            self.tree.follow(pid);
            self.arrived.push(pid);
        }
    }
}
