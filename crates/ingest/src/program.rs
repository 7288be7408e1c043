//! Processes that are followed from the moment that they begin to run a program.

use plumb_process::Program;

use super::Ingest;

/// A program that is waited for.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    awaited: Option<Program>,
    /// Processes that run it since they were asked for.
    arrived: Vec<u32>,
}

impl Ingest {
    /// Follows processes that exec this program from now on. Without effect under [`Filter::All`](super::Filter::All).
    pub fn await_program(&mut self, program: Program) {
        self.arrivals.awaited = Some(program);
    }

    /// Processes that began to run it since the last call.
    pub fn take_arrived(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.arrivals.arrived)
    }

    /// A process has exec'd, and has this name.
    pub(super) fn meet_comm(&mut self, pid: u32, comm: &[u8]) {
        if self.arrivals.awaited.as_ref().is_some_and(|program| program.is_comm(comm)) {
            self.arrive(pid);
        }
    }

    /// A file was mapped as code. After an exec the first one is the program.
    pub(super) fn meet_executable(&mut self, pid: u32, path: &[u8]) {
        let has_exec = self.tasks.processes.get(&pid).is_some_and(|p| p.just_exec && p.executable.is_empty());
        if has_exec && self.arrivals.awaited.as_ref().is_some_and(|program| program.is_executable(path)) {
            self.arrive(pid);
        }
    }

    fn arrive(&mut self, pid: u32) {
        // One that it forked is followed with it, and is not waited for by itself.
        if !self.tree.follows(pid) {
            self.tree.follow(pid);
            self.arrivals.arrived.push(pid);
        }
    }
}
