//! The part of a view's stack tree that some samples touch, with the cost of every node: its own, and including
//! its callees.
//!
//! Nodes are numbered from 0 without gaps and a caller comes before its callees, so totals need one backward pass
//! and nothing here recurses: stacks may be thousands of frames deep.

use std::convert::Infallible;

use crate::callees::Callees;
use crate::cost::Cost;
use crate::frame::FrameIndex;
use crate::view::{NodeId, View};

/// One node.
#[derive(Clone, Copy, Debug)]
struct Node {
    in_view: NodeId,
    frame: FrameIndex,
    caller: Option<u32>,
    own: Cost,
    total: Cost,
}

/// The tree of the stacks of some samples.
#[derive(Debug, Default)]
pub(crate) struct CostTree {
    nodes: Vec<Node>,
    callees: Callees,
}

/// Builds cost trees one after the other, reusing its allocations.
pub(crate) struct TreeBuilder {
    touched: Touched,
    /// For each node of the view, its number in the tree being built.
    number: Vec<u32>,
}

impl TreeBuilder {
    pub fn new(view: &View<'_>) -> Self {
        Self { touched: Touched::new(view), number: vec![0; view.node_count()] }
    }

    /// Builds the tree of these stacks and their costs.
    pub fn build(
        &mut self,
        view: &View<'_>,
        costs: impl Iterator<Item = (NodeId, Cost)> + Clone,
    ) -> CostTree {
        costs.clone().for_each(|(node, _)| self.touched.add(view, node));
        let touched = self.touched.take_in_order();
        let mut nodes = Vec::with_capacity(touched.len());
        for (number, &id) in touched.iter().enumerate() {
            self.number[id.index()] = number as u32;
            let node = view.node(id);
            // The set has all callers.
            let caller = node.caller.map(|caller| self.number[caller.index()]);
            let (own, total) = Default::default();
            nodes.push(Node { in_view: id, frame: node.frame, caller, own, total });
        }
        let callees = Callees::new(nodes.iter().map(|node| node.caller));
        let mut tree = CostTree { nodes, callees };
        for (node, cost) in costs {
            tree.nodes[self.number[node.index()] as usize].own += cost;
        }
        tree.sum_up();
        tree
    }
}

/// A set of nodes that contains the callers of each member.
pub(crate) struct Touched {
    bits: Vec<u64>,
    nodes: Vec<NodeId>,
}

impl Touched {
    pub fn new(view: &View<'_>) -> Self {
        Self { bits: vec![0; view.node_count().div_ceil(64)], nodes: Vec::new() }
    }

    /// Adds a node and all its callers.
    pub fn add(&mut self, view: &View<'_>, node: NodeId) {
        let mut next = Some(node);
        while let Some(id) = next {
            let (word, bit) = (id.index() / 64, 1 << (id.index() % 64));
            if self.bits[word] & bit != 0 {
                return;
            }
            self.bits[word] |= bit;
            self.nodes.push(id);
            next = view.node(id).caller;
        }
    }

    /// Empties the set and returns its nodes, callers before callees.
    pub fn take_in_order(&mut self) -> Vec<NodeId> {
        let mut nodes = std::mem::take(&mut self.nodes);
        // Sorting a few nodes is faster than scanning all bits.
        if nodes.len() < self.bits.len() / 16 {
            nodes.sort_unstable();
            nodes.iter().for_each(|id| self.bits[id.index() / 64] = 0);
            return nodes;
        }
        nodes.clear();
        for (index, word) in self.bits.iter_mut().enumerate() {
            let mut left = std::mem::take(word);
            while left != 0 {
                nodes.push(NodeId::from_index(index * 64 + left.trailing_zeros() as usize));
                left &= left - 1;
            }
        }
        nodes
    }
}

impl CostTree {
    fn sum_up(&mut self) {
        for number in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[number];
            let own = node.own;
            node.total += own;
            let (total, caller) = (node.total, node.caller);
            if let Some(caller) = caller {
                self.nodes[caller as usize].total += total;
            }
        }
    }

    /// Returns all nodes, callers before callees.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        0..self.nodes.len() as u32
    }

    /// Returns the outermost frames.
    pub fn roots(&self) -> &[u32] {
        self.callees.of(None)
    }

    /// Returns the node of the view that a node of the tree represents.
    pub fn in_view(&self, node: u32) -> NodeId {
        self.nodes[node as usize].in_view
    }

    pub fn frame(&self, node: u32) -> FrameIndex {
        self.nodes[node as usize].frame
    }

    /// Returns the cost of the samples whose innermost frame this node is.
    pub fn own(&self, node: u32) -> Cost {
        self.nodes[node as usize].own
    }

    /// Returns the cost of all samples whose stack contains this node.
    pub fn total(&self, node: u32) -> Cost {
        self.nodes[node as usize].total
    }

    pub fn caller(&self, node: u32) -> Option<u32> {
        self.nodes[node as usize].caller
    }

    pub fn callees(&self, node: u32) -> impl Iterator<Item = u32> {
        self.callees.of(Some(node)).iter().copied()
    }

    /// Visits the nodes none of whose callers has the same key, so that totals count recursion once.
    /// `open` has one entry per key, all 0, and is all 0 again at the end.
    pub fn outermost(
        &self,
        open: &mut [u32],
        key: impl Fn(FrameIndex) -> usize,
        mut visit: impl FnMut(u32, usize),
    ) {
        let key = |node| key(self.frame(node));
        let Ok(()) = self.callees.walk(open, key, |node, above| {
            let key = key(node);
            if above[key] == 0 {
                visit(node, key);
            }
            Ok::<(), Infallible>(())
        });
    }
}
