//! Boxes before they are ordered: those of a flame graph, and of two put together.
//!
//! Invariant: a box comes after its caller, and has no two callees with the same label.

use std::collections::HashMap;

use super::label::ROOT;
use crate::callees::Callees;

/// A box before the boxes are ordered.
pub(crate) struct Draft<T> {
    /// The box below it; `None` for the root.
    pub caller: Option<u32>,
    /// Number of its label.
    pub label: u32,
    /// Costs, and whatever else a picture keeps of a box.
    pub content: T,
}

/// The boxes of a picture, the root first.
pub(crate) struct Drafts<T> {
    /// The boxes in creation order.
    pub boxes: Vec<Draft<T>>,
    /// The callee of a box by label.
    known: HashMap<(u32, u32), u32>,
}

impl<T> Drafts<T> {
    /// Creates the root.
    pub fn new(content: T) -> Self {
        Self { boxes: vec![Draft { caller: None, label: ROOT, content }], known: HashMap::new() }
    }

    /// Returns the callee of a box with this label, adding it with the content that `new` makes.
    pub fn callee(&mut self, of: u32, label: u32, new: impl FnOnce() -> T) -> u32 {
        let next = self.boxes.len() as u32;
        let index = *self.known.entry((of, label)).or_insert(next);
        if index == next {
            self.boxes.push(Draft { caller: Some(of), label, content: new() });
        }
        index
    }

    /// Returns the callees of each box in creation order.
    pub fn callees(&self) -> Callees {
        Callees::new(self.boxes.iter().map(|one| one.caller))
    }

    /// Returns the boxes with their depths in pre-order; callees are ordered by `ranks` of their labels.
    pub fn in_order(&self, ranks: &[u32]) -> Vec<(u32, u32)> {
        let rank = |index: u32| ranks[self.boxes[index as usize].label as usize];
        let mut callees = self.callees();
        callees.sort_by(|one, other| rank(one).cmp(&rank(other)));
        callees.pre_order().map(|(index, depth)| (index, depth as u32)).collect()
    }
}
