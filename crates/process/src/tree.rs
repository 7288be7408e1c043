//! Process ancestry, and the processes that a recording follows.

use std::collections::HashSet;

/// The followed processes: some roots and all their descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    followed: HashSet<u32>,
}

impl Tree {
    /// Follows a process from now on.
    pub fn follow(&mut self, pid: u32) {
        self.followed.insert(pid);
    }

    /// Records a fork: the child is followed if its parent is.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if self.followed.contains(&parent) {
            self.followed.insert(child);
        } else {
            // The pid may have belonged to a followed process before.
            self.followed.remove(&child);
        }
    }

    /// Returns all followed processes, including those that have exited.
    pub fn followed(&self) -> impl Iterator<Item = u32> {
        self.followed.iter().copied()
    }

    /// Whether a process is followed, which it remains after its exit until its pid is reused.
    pub fn follows(&self, pid: u32) -> bool {
        self.followed.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_descendants_only() {
        let mut tree = Tree::default();
        tree.follow(10);
        tree.fork(10, 11);
        tree.fork(11, 12);
        tree.fork(1, 20);
        assert!(tree.follows(10) && tree.follows(11) && tree.follows(12) && !tree.follows(20));
        tree.fork(1, 12);
        assert!(!tree.follows(12), "the number belongs to a stranger now");
    }
}
