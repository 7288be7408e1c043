//! Loops that jump through a table for each step: interpreters, and state machines written as one.
//!
//! Detected from the code: blocks that are only reached by an indirect jump and lead to another one.

use std::collections::BTreeSet;

use super::graph::{Graph, weight};
use super::{LoopCause, LoopFinding};
use crate::annotate::{Annotation, InstructionKind};

/// Least number of targets with samples: fewer are a switch in some other loop.
pub(crate) const LEAST_TARGETS: usize = 4;
/// Least share of the function, in percent, of the jumps with the instructions before them and the first instruction of each target.
pub(crate) const LEAST_SHARE: f64 = 30.0;
/// Instructions before an indirect jump that compute its target.
const BEFORE: usize = 4;

/// Returns the dispatch finding, if a function does little else.
pub(super) fn dispatch(annotation: &Annotation) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let graph = Graph::new(&annotation.listing);
    let ends_so =
        |block: usize| instructions[graph.extents[block].1].class.kind == InstructionKind::IndirectJump;
    let jumps: Vec<usize> = (0..graph.extents.len()).filter(|&block| ends_so(block)).collect();
    let back = leading_to(&graph, &jumps);
    let block_weight = |block: usize| {
        let (first, last) = graph.extents[block];
        annotation.rows[first..=last].iter().map(weight).sum::<f64>()
    };
    // The first block is the function's entry.
    let targets: Vec<usize> = (1..graph.extents.len())
        .filter(|&block| !graph.has_predecessor(block) && back.contains(&block) && block_weight(block) > 0.0)
        .collect();
    if targets.len() < LEAST_TARGETS {
        return None;
    }
    let before = jumps.iter().flat_map(|&block| {
        let (first, last) = graph.extents[block];
        last.saturating_sub(BEFORE).max(first)..=last
    });
    let firsts = targets.iter().map(|&block| graph.extents[block].0);
    let dispatching: BTreeSet<usize> = before.chain(firsts).collect();
    let share = annotation.share(dispatching.iter().map(|&index| weight(&annotation.rows[index])).sum());
    let heaviest =
        jumps.iter().copied().max_by(|&one, &other| block_weight(one).total_cmp(&block_weight(other)))?;
    (share >= LEAST_SHARE).then_some(LoopFinding {
        cause: LoopCause::Dispatch { targets: targets.len() },
        instruction: graph.extents[heaviest].1,
        weight: back.iter().map(|&block| block_weight(block)).sum(),
        avoidable: 1.0,
    })
}

/// Returns the blocks from which one of these is reached without an indirect jump, including these.
fn leading_to(graph: &Graph, blocks: &[usize]) -> BTreeSet<usize> {
    let mut met: BTreeSet<usize> = BTreeSet::new();
    let mut open = blocks.to_vec();
    while let Some(block) = open.pop() {
        if met.insert(block) {
            open.extend(graph.predecessors(block));
        }
    }
    met
}
