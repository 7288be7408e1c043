//! Callers that matter: for a hot function the call paths that bring most of its time.
//!
//! A path is followed from the function outwards as long as one caller brings a good part of the function's time; where the time
//! comes from many callers it ends. Paths don't overlap, so that their shares can be added up.

use std::collections::HashSet;

use crate::cost::Cost;
use crate::frame::{FrameIndex, SymbolId};
use crate::tree::{Call, Tree, TreeOptions};
use crate::view::View;

use super::hot::HotFunction;

/// Paths with less of the function's time than this, in percent, are left out.
const LEAST_PERCENT: f64 = 10.0;

/// A path is followed through no more callers: with samples at each depth of a recursion work would grow with the square of that.
const MOST_CALLERS: usize = 1000;

/// A call path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The callers, the innermost first: not the function itself.
    pub callers: Vec<FrameIndex>,
    /// What came by it.
    pub cost: Cost,
    /// It reaches the root of the stacks: beyond a path that doesn't, callers are many.
    pub is_whole: bool,
}

/// The call paths of each function, those that bring more first.
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

/// Adds the paths that go on from `root`.
fn follow(tree: &Tree, root: usize, least: f64, paths: &mut Vec<CallPath>) {
    let mut work = vec![(root, Vec::new())];
    while let Some((at, callers)) = work.pop() {
        let node = &tree.nodes[at];
        let is_big = |cost: Cost| cost.weight as f64 >= least;
        let next = node.children.iter().filter(|&&child| is_big(tree.nodes[child].total));
        let next: Vec<usize> = next.copied().collect();
        let gone: u64 = next.iter().map(|&child| tree.nodes[child].total.weight).sum();
        let left = node.total.weight.saturating_sub(gone);
        // A stack may be a million calls deep: what comes by one caller alone goes on with the path as it is. More than one big caller there
        // can only be at a few nodes.
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
        // What no single caller brings much of stops here, and so does what has no caller.
        if is_big(Cost { weight: left, samples: 0 }) && !callers.is_empty() {
            let samples = node.children.iter().filter(|&&child| is_big(tree.nodes[child].total));
            let gone: u64 = samples.map(|&child| tree.nodes[child].total.samples).sum();
            let cost = Cost { weight: left, samples: node.total.samples.saturating_sub(gone) };
            paths.push(CallPath { callers, cost, is_whole: is_big(node.own) });
        }
    }
}
