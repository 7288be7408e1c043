//! Lives of processes: when each began, how, from whom, and when and how it ended, whether or not it was ever sampled.
//!
//! A *life* is a process from its fork or exec to its next exec or its exit: one program in one process. A process
//! that execs has several lives, one after the other, with the same pid; the short one between the fork and the first
//! exec still runs the parent's program. Rows are in the order in which the lives were learnt of, which is that of
//! their beginnings but for processes that ran already: a life's parent always comes before it.

use std::ops::Index;

use crate::process::ProcessId;
use crate::strings::StringId;
use crate::table::{Id, id};

id!(
    /// A life of a process.
    LifeId
);

/// A process from its fork or exec to its next exec or its exit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// Process id (the kernel's tgid).
    pub pid: u32,
    /// The life that forked this process, the same for all lives of a process. `None` if not known.
    pub parent: Option<LifeId>,
    /// Path of the executable, empty if not known. After a fork that of the parent.
    pub exe: StringId,
    /// The kernel's name of the process (`comm`) when the life began: of a script the script's.
    pub comm: StringId,
    /// How it began.
    pub begin: Begin,
    /// How it ended.
    pub end: LifeEnd,
    /// When it began, in nanoseconds on the clock of the samples. `None`: before the recording.
    pub start_ns: Option<u64>,
    /// When it ended. `None`: not while it was recorded. Since Linux 6.16 the kernel tells of an exit before it frees
    /// the memory, before that it told afterwards.
    pub end_ns: Option<u64>,
    /// Processor time that the kernel accounted for all threads of this life, in nanoseconds, where that is known.
    pub cpu_ns: Option<u64>,
    /// The most memory that was resident, in bytes, as last read while it ran. Only read of processes that fork.
    pub peak_rss_bytes: Option<u64>,
    /// What its samples point at. `None`: it was never sampled.
    pub process: Option<ProcessId>,
}

/// The lives of a recording, each under its id. Those that have ended may be taken out while the recording goes on, once they are
/// kept elsewhere: the others keep their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lives {
    rows: Vec<Life>,
    /// The ids of `rows`, in order.
    ids: Vec<LifeId>,
    /// How many there were ever.
    count: usize,
}

impl Lives {
    /// Appends a life and returns its id.
    pub fn push(&mut self, life: Life) -> LifeId {
        let id = LifeId::from_index(self.count);
        self.count += 1;
        self.rows.push(life);
        self.ids.push(id);
        id
    }

    /// The life, unless it was taken out.
    pub fn get(&self, id: LifeId) -> Option<&Life> {
        self.rows.get(self.place(id)?)
    }

    /// The life, to be changed in place, unless it was taken out.
    pub fn find_mut(&mut self, id: LifeId) -> Option<&mut Life> {
        let place = self.place(id)?;
        self.rows.get_mut(place)
    }

    /// The life, to be changed in place. It must not have been taken out.
    pub fn get_mut(&mut self, id: LifeId) -> &mut Life {
        self.find_mut(id).expect("a life that something refers to is never taken out")
    }

    fn place(&self, id: LifeId) -> Option<usize> {
        if self.ids.len() == self.count {
            return (id.index() < self.count).then(|| id.index());
        }
        self.ids.binary_search(&id).ok()
    }

    /// The id of life `index` if there was such a life: the door for row numbers that came from a file.
    pub fn check(&self, index: u64) -> Option<LifeId> {
        usize::try_from(index).ok().filter(|&i| i < self.count).map(LifeId::from_index)
    }

    /// Number of lives, also of those that were taken out.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there was no life.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The lives that are there, in the order of their ids.
    pub fn rows(&self) -> &[Life] {
        &self.rows
    }

    /// Likewise with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (LifeId, &Life)> + Clone {
        self.ids.iter().copied().zip(&self.rows)
    }

    /// Takes out all but those that are to stay.
    pub fn retain(&mut self, mut stays: impl FnMut(LifeId, &Life) -> bool) {
        let keep: Vec<bool> = self.iter().map(|(id, life)| stays(id, life)).collect();
        let mut at = keep.iter();
        self.rows.retain(|_| at.next() == Some(&true));
        let mut at = keep.iter();
        self.ids.retain(|_| at.next() == Some(&true));
        self.rows.shrink_to(2 * self.rows.len());
        self.ids.shrink_to(2 * self.ids.len());
    }
}

impl Index<LifeId> for Lives {
    type Output = Life;
    fn index(&self, id: LifeId) -> &Life {
        self.get(id).expect("a life that something refers to is never taken out")
    }
}

/// How a life began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// It ran before the recording.
    Running,
    /// By a fork, and it runs its parent's program.
    Fork,
    /// By an exec.
    Exec,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifeEnd {
    /// It did not, as far as was recorded.
    Running,
    /// By an exec: the next life with the same pid follows.
    Exec,
    /// By the exit of its last thread.
    Exit,
}

impl Begin {
    /// All ways.
    pub const ALL: [Begin; 3] = [Begin::Running, Begin::Fork, Begin::Exec];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Begin::Running => "running",
            Begin::Fork => "fork",
            Begin::Exec => "exec",
        }
    }

    /// The way called `name`.
    pub fn from_name(name: &str) -> Option<Begin> {
        Begin::ALL.into_iter().find(|begin| begin.name() == name)
    }
}

impl LifeEnd {
    /// All ways.
    pub const ALL: [LifeEnd; 3] = [LifeEnd::Running, LifeEnd::Exec, LifeEnd::Exit];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            LifeEnd::Running => "running",
            LifeEnd::Exec => "exec",
            LifeEnd::Exit => "exit",
        }
    }

    /// The way called `name`.
    pub fn from_name(name: &str) -> Option<LifeEnd> {
        LifeEnd::ALL.into_iter().find(|end| end.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::Strings;

    #[test]
    fn lives_keep_their_ids_when_others_are_taken_out() {
        let empty = Strings::default().empty();
        let life = |pid| Life {
            pid,
            parent: None,
            exe: empty,
            comm: empty,
            begin: Begin::Fork,
            end: LifeEnd::Exit,
            start_ns: None,
            end_ns: None,
            cpu_ns: None,
            peak_rss_bytes: None,
            process: None,
        };
        let mut lives = Lives::default();
        let ids: Vec<LifeId> = (0..10).map(|pid| lives.push(life(pid))).collect();
        lives.retain(|_, life| life.pid % 3 == 0);
        assert_eq!(
            lives.iter().map(|(id, life)| (id.index(), life.pid)).collect::<Vec<_>>(),
            [(0, 0), (3, 3), (6, 6), (9, 9)]
        );
        assert_eq!((lives.get(ids[6]).map(|life| life.pid), lives.get(ids[5])), (Some(6), None));
        assert_eq!((lives.push(life(10)).index(), lives.len(), lives.rows().len()), (10, 11, 5));
        assert_eq!(lives[LifeId::from_index(10)].pid, 10);
        assert!(lives.check(5).is_some() && lives.check(11).is_none(), "it was there");
    }
}
