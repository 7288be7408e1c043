//! Stacks that begin with given functions: the selection of a user who has zoomed into a flame graph.

use std::collections::HashMap;

use plumb_store::{CallTree, Dictionary, StackNodeId};

use crate::error::{ApiError, ErrorCode};
use crate::pyroscope::types::StackTraceSelector;

/// The functions that stacks have to begin with, outermost first; empty: all stacks.
pub(crate) fn functions(selector: Option<StackTraceSelector>) -> Result<Vec<String>, ApiError> {
    let Some(selector) = selector else { return Ok(Vec::new()) };
    if selector.go_pgo.is_some() {
        let message = "profiles for Go's profile-guided optimization are not cut down: leave out go_pgo and pass the whole profile to go build";
        return Err(ApiError::new(ErrorCode::Unimplemented, message));
    }
    Ok(selector.call_site.into_iter().map(|site| site.name).collect())
}

/// The part of a call tree that begins with the functions.
pub(crate) fn cut(tree: CallTree<1>, functions: &[String]) -> CallTree<1> {
    if functions.is_empty() {
        return tree;
    }
    // Number of matching functions by node; `None` for a node off the path.
    let mut depth: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    let mut cut = CallTree { names: tree.names.clone(), nodes: tree.nodes.clone() };
    for node in &tree.nodes {
        let above = node.caller.map_or(Some(0), |caller| depth[caller as usize]);
        depth.push(match above {
            Some(matched) if matched == functions.len() => Some(matched),
            Some(matched) => {
                let is_next = *tree.names[node.name as usize] == *functions[matched];
                is_next.then_some(matched + 1)
            }
            None => None,
        });
    }
    // Only complete matches count; their callers get the sum of them.
    for (place, node) in cut.nodes.iter_mut().enumerate() {
        if depth[place] != Some(functions.len()) {
            (node.own, node.total) = ([0], [0]);
        }
    }
    for place in (0..cut.nodes.len()).rev() {
        let (total, caller) = (cut.nodes[place].total[0], cut.nodes[place].caller);
        let Some(caller) = caller.map(|caller| caller as usize) else { continue };
        if depth[caller] != Some(functions.len()) {
            cut.nodes[caller].total[0] = cut.nodes[caller].total[0].saturating_add(total);
        }
    }
    cut
}

/// Tests whether stacks begin with given functions.
pub(crate) struct BeginsWith<'d> {
    dictionary: &'d Dictionary,
    functions: &'d [String],
    known: HashMap<StackNodeId, bool>,
}

impl<'d> BeginsWith<'d> {
    pub fn new(dictionary: &'d Dictionary, functions: &'d [String]) -> Self {
        Self { dictionary, functions, known: HashMap::new() }
    }

    pub fn is(&mut self, stack: StackNodeId) -> bool {
        *self.known.entry(stack).or_insert_with(|| {
            let frames: Vec<_> = self.dictionary.frames_of(stack).collect();
            let name = |frame| self.dictionary.resolve(self.dictionary.frame_at(frame).function);
            let mut names = frames.iter().rev().map(|&frame| name(frame));
            self.functions.iter().all(|function| names.next() == Some(function))
        })
    }
}
