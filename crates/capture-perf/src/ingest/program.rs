//! Processes that are followed from the moment that they begin to run a program.

use super::Ingest;

/// The kernel's names of tasks have no more bytes (`TASK_COMM_LEN` less its zero).
const COMM: usize = 15;

/// A program, by its path or by its name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<u8>);

impl Program {
    /// The program of this path, if there is a slash in it, or of this name in any folder. A script has its own name, and the
    /// path of its interpreter.
    pub fn new(text: &[u8]) -> Self {
        Self(text.to_vec())
    }

    /// What the kernel calls a process that begins to run it, as far as that goes.
    pub fn comm(&self) -> &[u8] {
        let name = self.0.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        name.get(..COMM).unwrap_or(name)
    }

    fn is_path(&self) -> bool {
        self.0.contains(&b'/')
    }

    /// Whether a process of this name surely runs it.
    pub fn is_comm(&self, comm: &[u8]) -> bool {
        !self.is_path() && self.0.len() <= COMM && comm == self.0
    }

    /// Whether a process with this executable runs it.
    pub fn is_executable(&self, path: &[u8]) -> bool {
        match self.is_path() {
            true => path == self.0,
            false => path.rsplit(|&byte| byte == b'/').next() == Some(&self.0[..]),
        }
    }
}

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
    pub(crate) fn take_arrived(&mut self) -> Vec<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_path_or_a_name() {
        let program = |text: &str| Program::new(text.as_bytes());
        assert!(program("gcc").is_comm(b"gcc") && program("gcc").is_executable(b"/usr/bin/gcc"));
        assert!(!program("gcc").is_comm(b"gcc-12") && !program("gcc").is_executable(b"/usr/bin/gcc-12"));
        assert!(program("/usr/bin/gcc").is_executable(b"/usr/bin/gcc"));
        assert!(!program("/usr/bin/gcc").is_executable(b"/opt/bin/gcc"));
        assert!(!program("/usr/bin/gcc").is_comm(b"gcc"), "it may be another folder's");
        let long = program("a-name-of-more-than-15");
        assert_eq!(long.comm(), b"a-name-of-more-");
        assert!(!long.is_comm(b"a-name-of-more-"), "others begin so too");
        assert!(long.is_executable(b"/x/a-name-of-more-than-15"));
    }
}
