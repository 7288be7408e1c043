//! Sums by row: what samples cost where they were taken, and everywhere above.
//!
//! Whether a node is the outermost of its row on its stack depends on the stacks alone. It is found once; after that
//! a group of threads costs one pass over the nodes that its samples touch.

use crate::cost::Cost;
use crate::cost_tree::{Touched, TreeBuilder};
use crate::view::{NodeId, View};

use super::key::FrameKeys;

/// Sums of one group of threads after the other, in memory that serves all.
pub(super) struct RowSums<'a, 'p> {
    view: &'a View<'p>,
    frames: &'a FrameKeys,
    /// Per node whether no caller of it belongs to the same row.
    outermost: Vec<bool>,
    touched: Touched,
    /// Per node what goes through it; all 0 between groups.
    through: Vec<Cost>,
    /// Per frame key: own and total.
    sums: Vec<(Cost, Cost)>,
    /// The keys that have sums.
    keys: Vec<usize>,
}

impl<'a, 'p> RowSums<'a, 'p> {
    /// For samples at these nodes and no others.
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
                // Samples that weigh nothing have rows too.
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

    /// The sums, which are then zero again: key, own, total.
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
