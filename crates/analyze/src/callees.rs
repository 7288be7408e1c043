//! The callees of the nodes of a call tree, and walks from the outermost calls inwards: for trees of recordings, flame graphs and store queries alike.
//!
//! Invariant: a caller comes before its callees, so every walk ends. Nothing here recurses: stacks may be thousands of frames deep.
//!
//! Elsewhere: names and costs of the nodes.

use std::cmp::Ordering;

/// The callees of each node of a call tree whose nodes are numbered from 0.
#[derive(Clone, Debug)]
pub struct Callees {
    /// Start of each caller's callees in `list`: of the outermost calls, then of node 0, and so on; the end of the last one's.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Default for Callees {
    fn default() -> Self {
        Self::new(std::iter::empty())
    }
}

impl Callees {
    /// Creates the list from the caller of each node; `None` for an outermost call. Callees of a node are in ascending order.
    pub fn new(callers: impl ExactSizeIterator<Item = Option<u32>> + Clone) -> Self {
        let mut starts = vec![0_u32; callers.len() + 2];
        callers.clone().for_each(|caller| starts[slot(caller) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut list = vec![0; callers.len()];
        for (node, caller) in callers.enumerate() {
            let at = &mut next[slot(caller)];
            list[*at as usize] = node as u32;
            *at += 1;
        }
        Self { starts, list }
    }

    /// Returns the callees of a node; of `None` the outermost calls.
    pub fn of(&self, caller: Option<u32>) -> &[u32] {
        let slot = slot(caller);
        &self.list[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }

    /// Sorts the callees of each node. `compare` has to tell all of them apart.
    pub fn sort_by(&mut self, mut compare: impl FnMut(u32, u32) -> Ordering) {
        for range in self.starts.windows(2) {
            let siblings = &mut self.list[range[0] as usize..range[1] as usize];
            siblings.sort_unstable_by(|&one, &other| compare(one, other));
        }
    }

    /// Iterates over all nodes with their depths, 0 for an outermost call: each node directly before everything that it calls.
    pub fn pre_order(&self) -> impl Iterator<Item = (u32, usize)> {
        let below = |caller, depth| self.of(caller).iter().rev().map(move |&callee| (callee, depth));
        let mut open: Vec<(u32, usize)> = below(None, 0).collect();
        std::iter::from_fn(move || {
            let (node, depth) = open.pop()?;
            open.extend(below(Some(node), depth + 1));
            Some((node, depth))
        })
    }

    /// Visits all nodes in pre-order. `visit` gets, for each key, the number of callers above the node with that key: a sum of the nodes whose own key
    /// has 0 counts recursion once. `above` has an entry for each key, all 0, and is all 0 again unless `visit` fails.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub fn walk<E>(
        &self,
        above: &mut [u32],
        key: impl Fn(u32) -> usize,
        mut visit: impl FnMut(u32, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut path: Vec<usize> = Vec::new();
        for (node, depth) in self.pre_order() {
            path.drain(depth..).for_each(|left| above[left] -= 1);
            visit(node, above)?;
            let key = key(node);
            above[key] += 1;
            path.push(key);
        }
        path.into_iter().for_each(|left| above[left] -= 1);
        Ok(())
    }
}

/// Index in the starts.
fn slot(caller: Option<u32>) -> usize {
    caller.map_or(0, |caller| caller as usize + 1)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// 0 calls 1 and 3, 1 calls 2, 3 calls 4; 5 is called by none.
    fn callees() -> Callees {
        Callees::new([None, Some(0), Some(1), Some(0), Some(3), None].into_iter())
    }

    #[test]
    fn nodes_come_directly_before_what_they_call() {
        let mut all = callees();
        assert_eq!((all.of(None), all.of(Some(0)), all.of(Some(2))), (&[0, 5][..], &[1, 3][..], &[][..]));
        assert_eq!(all.pre_order().collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 2), (3, 1), (4, 2), (5, 0)]);
        all.sort_by(|one, other| other.cmp(&one));
        let nodes = all.pre_order().map(|(node, _)| node);
        assert_eq!(nodes.collect::<Vec<_>>(), [5, 0, 3, 4, 1, 2]);
        assert_eq!(Callees::default().pre_order().count(), 0);
    }

    #[test]
    fn each_node_knows_the_keys_above_it() {
        let (mut above, mut seen) = ([0; 2], Vec::new());
        let visit = |node, above: &[u32]| {
            seen.push((node, above.to_vec()));
            Ok::<(), Infallible>(())
        };
        // Node 4 has the key of node 0, and so has node 2 of node 1.
        let Ok(()) = callees().walk(&mut above, |node| [0, 1, 1, 1, 0, 0][node as usize], visit);
        let expected = [[0, 0], [1, 0], [1, 1], [1, 0], [1, 1], [0, 0]];
        assert_eq!(seen, (0..).zip(expected.map(|one| one.to_vec())).collect::<Vec<_>>());
        assert_eq!(above, [0; 2]);
    }
}
