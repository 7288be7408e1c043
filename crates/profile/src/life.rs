//! Process lives: start, parent and end of each, whether or not it was sampled.
//!
//! A *life* is a process from its fork or exec to its next exec or its exit: one program in one process. A process
//! that execs has several successive lives with the same pid; the short one between the fork and the first
//! exec still runs the parent's program. Rows are in the order in which the lives became known, which is that of
//! their starts except for processes that were already running: a life's parent always comes before it.

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
    /// The life that forked this process; all lives of a process have the same. `None` if not known.
    pub parent: Option<LifeId>,
    /// Path of the executable, empty if not known. After a fork, the parent's.
    pub exe: StringId,
    /// The kernel's name of the process (`comm`) at the start of the life; for a script, the script's name.
    pub comm: StringId,
    /// Start of the life: fork, exec, or before the recording.
    pub begin: Begin,
    /// End of the life: exec, exit, or after the recording.
    pub end: LifeEnd,
    /// Start in nanoseconds on the clock of the samples. `None`: before the recording.
    pub start_ns: Option<u64>,
    /// End in nanoseconds. `None`: not during the recording. Since Linux 6.16 the kernel reports an exit before it frees
    /// the memory; older kernels report it afterwards.
    pub end_ns: Option<u64>,
    /// CPU time that the kernel accounted for all threads of this life, in nanoseconds, if known.
    pub cpu_ns: Option<u64>,
    /// Peak resident memory in bytes, as last read while it ran. Only read for processes that fork.
    pub peak_rss_bytes: Option<u64>,
    /// The process of its samples. `None`: it was never sampled.
    pub process: Option<ProcessId>,
}

/// The lives of a recording by id. Ended lives may be removed during the recording once they are
/// stored elsewhere: the others keep their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lives {
    rows: Vec<Life>,
    /// Ids of `rows`, sorted.
    ids: Vec<LifeId>,
    /// Number of lives ever added.
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

    /// Returns the life, unless it was removed.
    pub fn get(&self, id: LifeId) -> Option<&Life> {
        self.rows.get(self.place(id)?)
    }

    /// Returns the life for modification, unless it was removed.
    pub fn find_mut(&mut self, id: LifeId) -> Option<&mut Life> {
        let place = self.place(id)?;
        self.rows.get_mut(place)
    }

    /// Returns the life for modification. It must not have been removed.
    pub fn get_mut(&mut self, id: LifeId) -> &mut Life {
        self.find_mut(id).expect("a life that something refers to is never taken out")
    }

    fn place(&self, id: LifeId) -> Option<usize> {
        if self.ids.len() == self.count {
            return (id.index() < self.count).then(|| id.index());
        }
        self.ids.binary_search(&id).ok()
    }

    /// Returns the id of life `index` if there was such a life: converts row numbers from files.
    pub fn check(&self, index: u64) -> Option<LifeId> {
        usize::try_from(index).ok().filter(|&i| i < self.count).map(LifeId::from_index)
    }

    /// Returns the number of lives, including removed ones.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there was never a life.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the lives that were not removed, by id.
    pub fn rows(&self) -> &[Life] {
        &self.rows
    }

    /// Iterates over these lives with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (LifeId, &Life)> + Clone {
        self.ids.iter().copied().zip(&self.rows)
    }

    /// Removes all lives except those for which `stays` returns true.
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

/// The start of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// Running before the recording.
    Running,
    /// Forked, and running its parent's program.
    Fork,
    /// Started by an exec.
    Exec,
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifeEnd {
    /// Not ended during the recording.
    Running,
    /// Ended by an exec: the next life with the same pid follows.
    Exec,
    /// Ended by the exit of its last thread.
    Exit,
}

impl Begin {
    /// All variants.
    pub const ALL: [Begin; 3] = [Begin::Running, Begin::Fork, Begin::Exec];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Begin::Running => "running",
            Begin::Fork => "fork",
            Begin::Exec => "exec",
        }
    }

    /// Returns the variant called `name`.
    pub fn from_name(name: &str) -> Option<Begin> {
        Begin::ALL.into_iter().find(|begin| begin.name() == name)
    }
}

impl LifeEnd {
    /// All variants.
    pub const ALL: [LifeEnd; 3] = [LifeEnd::Running, LifeEnd::Exec, LifeEnd::Exit];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            LifeEnd::Running => "running",
            LifeEnd::Exec => "exec",
            LifeEnd::Exit => "exit",
        }
    }

    /// Returns the variant called `name`.
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
