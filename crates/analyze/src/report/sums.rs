//! Own and total costs by row.
//!
//! Whether a node is the outermost of its row on its stack depends on the stacks alone and is computed once; after that
//! a group of threads costs one pass over the nodes with its samples.

use crate::cost::Cost;
use crate::cost_tree::{Touched, TreeBuilder};
use crate::view::{NodeId, View};

use super::key::FrameKeys;

/// Computes the sums of one group of threads after the other, reusing its allocations.
pub(super) struct RowSums<'a, 'p> {
    view: &'a View<'p>,
    frames: &'a FrameKeys,
    /// For each node, whether no caller of it belongs to the same row.
    outermost: Vec<bool>,
    touched: Touched,
    /// For each node, the cost of its stacks; all 0 between groups.
    through: Vec<Cost>,
    /// For each frame key, own and total cost.
    sums: Vec<(Cost, Cost)>,
    /// The keys with costs.
    keys: Vec<usize>,
}

impl<'a, 'p> RowSums<'a, 'p> {
    /// Creates the sums for samples at these nodes.
    pub fn new(
        view: &'a View<'p>,
        frames: &'a FrameKeys,
        nodes: impl Iterator<Item = NodeId> + Clone,
    ) -> Self {
        Self {
            view,
            frames,
            outermost: outermost(view, frames, nodes),
            touched: Touched::new(view),
            through: vec![Cost::default(); view.node_count()],
            sums: vec![Default::default(); frames.len()],
            keys: Vec::new(),
        }
    }

    /// Adds samples.
    pub fn add(&mut self, costs: impl Iterator<Item = (NodeId, Cost)>) {
        for (node, cost) in costs {
            self.touched.add(self.view, node);
            self.through[node.index()] += cost;
            let key = self.key(node);
            self.sums[key].0 += cost;
        }
        for node in self.touched.take_in_order().into_iter().rev() {
            let cost = std::mem::take(&mut self.through[node.index()]);
            if let Some(caller) = self.view.node(node).caller {
                self.through[caller.index()] += cost;
            }
            if self.outermost[node.index()] {
                let key = self.key(node);
                // Samples of weight 0 have rows too.
                if self.sums[key].1 == Cost::default() {
                    self.keys.push(key);
                }
                self.sums[key].1 += cost;
            }
        }
    }

    fn key(&self, node: NodeId) -> usize {
        self.frames.of(self.view.node(node).frame)
    }

    /// Returns the sums as key, own, total, and resets them to zero.
    pub fn take(&mut self) -> impl Iterator<Item = (usize, Cost, Cost)> {
        let sums = &mut self.sums;
        self.keys.drain(..).map(move |key| {
            let (own, total) = std::mem::take(&mut sums[key]);
            (key, own, total)
        })
    }
}

fn outermost(view: &View<'_>, frames: &FrameKeys, nodes: impl Iterator<Item = NodeId> + Clone) -> Vec<bool> {
    let mut outermost = vec![false; view.node_count()];
    let tree = TreeBuilder::new(view).build(view, nodes.map(|node| (node, Cost::default())));
    tree.outermost(
        &mut vec![0; frames.len()],
        |frame| frames.of(frame),
        |node, _| {
            outermost[tree.in_view(node).index()] = true;
        },
    );
    outermost
}
