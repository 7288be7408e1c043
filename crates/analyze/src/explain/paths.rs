//! Call paths into hot functions: those that contribute most of a function's time.
//!
//! A path is followed from the function outwards while one caller contributes a large share of the function's time, and ends where the time
//! comes from many callers. Paths do not overlap, so their shares add up.

use std::collections::HashSet;

use crate::cost::Cost;
use crate::frame::{FrameIndex, SymbolId};
use crate::tree::{Call, Tree, TreeOptions};
use crate::view::View;

use super::hot::HotFunction;

/// Paths below this share of the function's time, in percent, are left out.
const LEAST_PERCENT: f64 = 10.0;

/// Longest path, in callers: with samples at each depth of a recursion the work would grow with its square.
const MOST_CALLERS: usize = 1000;

/// A call path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The callers, innermost first, without the function itself.
    pub callers: Vec<FrameIndex>,
    /// Cost of the samples with this path.
    pub cost: Cost,
    /// Whether the path reaches the root of the stacks; otherwise it ends where callers are many.
    pub is_whole: bool,
}

/// Returns the call paths of each function, most expensive first.
pub(super) fn paths(view: &View<'_>, functions: &[HotFunction]) -> Vec<Vec<CallPath>> {
    let least = functions.iter().map(|function| function.own.weight).min().unwrap_or(0);
    let part = |weight: u64| weight as f64 * LEAST_PERCENT / 100.0;
    let min_percent = part(least) * 100.0 / (view.whole().weight as f64).max(1.0);
    let symbols: HashSet<SymbolId> =
        functions.iter().map(|function| view.frame(function.frame).symbol).collect();
    let is_one = |symbol| symbols.contains(&symbol);
    let tree = Tree::bottom_up_from(view, is_one, MOST_CALLERS + 1, TreeOptions::above(min_percent));
    let of = |function: &HotFunction| {
        let symbol = view.frame(function.frame).symbol;
        let is_it = |&root: &usize| match tree.nodes[root].call {
            Call::Frame { frame, .. } => view.frame(frame).symbol == symbol,
            Call::Comm(_) => false,
        };
        let Some(root) = tree.roots.iter().copied().find(is_it) else { return Vec::new() };
        let mut paths = Vec::new();
        follow(&tree, root, part(function.own.weight), &mut paths);
        paths.sort_by_key(|path| std::cmp::Reverse(path.cost));
        paths
    };
    functions.iter().map(of).collect()
}

/// Adds the paths that continue from `root`.
fn follow(tree: &Tree, root: usize, least: f64, paths: &mut Vec<CallPath>) {
    let mut work = vec![(root, Vec::new())];
    while let Some((at, callers)) = work.pop() {
        let node = &tree.nodes[at];
        let is_big = |cost: Cost| cost.weight as f64 >= least;
        let next = node.children.iter().filter(|&&child| is_big(tree.nodes[child].total));
        let next: Vec<usize> = next.copied().collect();
        let gone: u64 = next.iter().map(|&child| tree.nodes[child].total.weight).sum();
        let left = node.total.weight.saturating_sub(gone);
        // A stack may be a million calls deep: a single caller extends the path in place. Only a few nodes can have
        // more than one big caller.
        if let (&[child], false) = (&next[..], is_big(Cost { weight: left, samples: 0 })) {
            let mut longer = callers;
            if let Call::Frame { frame, .. } = tree.nodes[child].call {
                longer.push(frame);
                work.push((child, longer));
            }
            continue;
        }
        for &child in &next {
            let Call::Frame { frame, .. } = tree.nodes[child].call else { continue };
            let mut longer: Vec<FrameIndex> = callers.clone();
            longer.push(frame);
            work.push((child, longer));
        }
        // A path ends here without a caller, or if no single caller contributes enough.
        if is_big(Cost { weight: left, samples: 0 }) && !callers.is_empty() {
            let samples = node.children.iter().filter(|&&child| is_big(tree.nodes[child].total));
            let gone: u64 = samples.map(|&child| tree.nodes[child].total.samples).sum();
            let cost = Cost { weight: left, samples: node.total.samples.saturating_sub(gone) };
            paths.push(CallPath { callers, cost, is_whole: is_big(node.own) });
        }
    }
}
