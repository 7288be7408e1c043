//! Stacks as a tree: each node is a frame and points at its caller, so that common outer frames are stored once.
//!
//! A node's caller always has a smaller id, which is what makes every walk end.

use crate::frame::FrameId;
use crate::table::{Interned, id};

id!(
    /// A stack, named by its innermost frame's node.
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
    /// The stack of `frame` called from `caller`.
    pub fn add(&mut self, caller: Option<StackId>, frame: FrameId) -> StackId {
        self.nodes.add(StackNode { caller, frame })
    }

    /// The innermost frame and its caller.
    pub fn node(&self, id: StackId) -> StackNode {
        self.nodes[id]
    }

    /// From the innermost node to the root.
    pub fn walk(&self, stack: Option<StackId>) -> impl Iterator<Item = StackNode> {
        std::iter::successors(stack.map(|id| self.nodes[id]), |node| node.caller.map(|id| self.nodes[id]))
    }

    /// The outermost frame.
    pub fn root(&self, stack: StackId) -> FrameId {
        self.walk(Some(stack)).last().map_or(self.nodes[stack].frame, |node| node.frame)
    }

    /// The id of row `index` if there is such a row.
    pub fn check(&self, index: u64) -> Option<StackId> {
        self.nodes.check(index)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes in the order of their ids: callers come before callees.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (StackId, &StackNode)> {
        self.nodes.iter()
    }
}
