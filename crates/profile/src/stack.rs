//! Stacks as a tree: each node has a frame and refers to its caller, so that common outer frames are stored once.
//!
//! Invariant: a node's caller has a smaller id, so every walk ends.

use crate::frame::FrameId;
use crate::table::{Interned, id};

id!(
    /// A stack, identified by the node of its innermost frame.
    StackId
);

/// A frame under a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The stack of the caller, `None` at the root.
    pub caller: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
}

/// Distinct stacks.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    nodes: Interned<StackId, StackNode>,
}

impl Stacks {
    /// Returns the stack of `frame` called from `caller`, adding it if needed.
    pub fn add(&mut self, caller: Option<StackId>, frame: FrameId) -> StackId {
        self.nodes.add(StackNode { caller, frame })
    }

    /// Returns the innermost frame and its caller.
    pub fn node(&self, id: StackId) -> StackNode {
        self.nodes[id]
    }

    /// Walks from the innermost node to the root.
    pub fn walk(&self, stack: Option<StackId>) -> impl Iterator<Item = StackNode> {
        std::iter::successors(stack.map(|id| self.nodes[id]), |node| node.caller.map(|id| self.nodes[id]))
    }

    /// Returns the outermost frame.
    pub fn root(&self, stack: StackId) -> FrameId {
        self.walk(Some(stack)).last().map_or(self.nodes[stack].frame, |node| node.frame)
    }

    /// Returns the id of row `index` if there is such a row.
    pub fn check(&self, index: u64) -> Option<StackId> {
        self.nodes.check(index)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Iterates over all nodes by id: callers come before callees.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (StackId, &StackNode)> {
        self.nodes.iter()
    }
}
