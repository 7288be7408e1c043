//! The most sampled path through a loop.

use std::collections::BTreeSet;

use super::graph::{Blocks, Graph, weight};
use crate::annotate::Annotation;

/// Returns the instructions of one iteration, by index: from the header always on to the successor with the most weight, until none is left.
pub(super) fn hot_path(annotation: &Annotation, graph: &Graph, blocks: &Blocks) -> Vec<usize> {
    let weight_of = |block: usize| {
        let (first, last) = graph.extents[block];
        annotation.rows[first..=last].iter().map(weight).sum::<f64>()
    };
    let heaviest = |blocks: &mut dyn Iterator<Item = usize>| {
        blocks.max_by(|&one, &other| weight_of(one).total_cmp(&weight_of(other)).then(other.cmp(&one)))
    };
    let Some(begin) = blocks.header.or_else(|| heaviest(&mut blocks.own.iter().copied())) else {
        return Vec::new();
    };
    let (mut path, mut met, mut at) = (Vec::new(), BTreeSet::new(), begin);
    // A header all of whose blocks are in inner loops has no path of its own.
    while blocks.own.contains(&at) && met.insert(at) {
        let (first, last) = graph.extents[at];
        path.extend(first..=last);
        let next = graph.successors[at].iter().copied();
        let mut next = next.filter(|block| blocks.own.contains(block) && !met.contains(block));
        match heaviest(&mut next) {
            Some(block) => at = block,
            None => break,
        }
    }
    path
}
