//! Flame graphs in Pyroscope's layout: the largest calls in rows of numbers, the rest summed up as "other".
//!
//! `prune` chooses the calls, `layout` puts them in rows. Elsewhere: encoding of rows (`pyroscope`), sums of calls (`store`).

mod layout;
mod prune;
mod tree;

use plumb_store::CallTree;

use layout::Layout;

use crate::pyroscope::querier::{FlameGraph, FlameGraphDiff, Level};

/// The flame graph of one selection, with about `nodes` boxes.
pub(crate) fn graph(tree: &CallTree<1>, nodes: usize) -> FlameGraph {
    let Layout { names, levels, max_self } = layout::layout(tree, &prune::prune(tree, nodes));
    let levels = levels.into_iter().map(|values| Level { values }).collect();
    FlameGraph { names, levels, total: tree.total()[0], max_self }
}

/// The calls of one selection, about `nodes` of them, in the form that Pyroscope's servers exchange.
pub(crate) fn call_tree(tree: &CallTree<1>, nodes: usize) -> Vec<u8> {
    tree::write(tree, &prune::prune(tree, nodes))
}

/// The flame graph of two selections, with about `nodes` boxes.
pub(crate) fn diff(tree: &CallTree<2>, nodes: usize) -> FlameGraphDiff {
    let Layout { names, levels, max_self } = layout::layout(tree, &prune::prune(tree, nodes));
    let levels = levels.into_iter().map(|values| Level { values }).collect();
    let [left_ticks, right_ticks] = tree.total();
    let total = left_ticks.saturating_add(right_ticks);
    FlameGraphDiff { names, levels, total, max_self, left_ticks, right_ticks }
}
