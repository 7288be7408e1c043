//! Call trees: from the roots down, from the innermost frames up, or around one function.
//!
//! Equal call paths are merged. A node's total is the sum of its children, its cut-off branches and its own cost, so
//! nothing is lost. Only branches worth showing are followed, which keeps deep and wide profiles
//! fast.

use std::cmp::Reverse;
use std::collections::HashMap;

use plumb_profile::{Id, ThreadId};

use crate::cost::Cost;
use crate::cost_tree::{CostTree, TreeBuilder};
use crate::frame::{FrameIndex, SymbolId};
use crate::pattern::Pattern;
use crate::report::Rest;
use crate::view::{NodeId, View};

/// Limits of a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeOptions {
    /// Branches below this share of the whole, in percent, are summed up.
    pub min_percent: f64,
    /// Largest number of roots; the cheapest others are summed up.
    pub most_roots: usize,
}

impl TreeOptions {
    /// Keeps all roots, and branches of at least this share of the whole, in percent.
    pub const fn above(min_percent: f64) -> Self {
        Self { min_percent, most_roots: usize::MAX }
    }
}

/// The subject of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// All threads with the same name as this one.
    Comm(ThreadId),
    /// A function.
    Frame {
        /// One of its frames.
        frame: FrameIndex,
        /// Whether all frames of the node are inlined calls.
        inlined: bool,
    },
}

/// A node of a [`Tree`].
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// Subject of the node.
    pub call: Call,
    /// Cost of all samples whose path goes through the node.
    pub total: Cost,
    /// Cost of those whose path ends here.
    pub own: Cost,
    /// Child nodes, most expensive first: indices into [`Tree::nodes`].
    pub children: Vec<usize>,
    /// Children below the limit.
    pub below: Rest,
}

/// A tree of calls, in either direction.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// All nodes; children come after their parents.
    pub nodes: Vec<TreeNode>,
    /// The root nodes, most expensive first.
    pub roots: Vec<usize>,
    /// Roots below the limit.
    pub below: Rest,
    /// Roots beyond the largest number, with the cost of all their samples.
    pub cut: Rest,
}

/// A node of the cost tree, and the part of its cost that counts.
type Item = (u32, Cost);

#[derive(Clone, Copy)]
enum Direction {
    Callers,
    Callees,
}

impl Tree {
    /// Builds the tree from the outermost callers to the innermost frames; below thread names if there are several.
    pub fn top_down(view: &View<'_>, options: TreeOptions) -> Self {
        let mut groups = by_comm(view);
        let mut builder = TreeBuilder::new(view);
        let mut tree = Tree::default();
        let several = groups.len() > 1;
        groups.sort_by_cached_key(|(thread, costs)| {
            let total: Cost = costs.iter().map(|&(_, cost)| cost).sum();
            (Reverse(total.weight), comm(view, *thread).to_owned())
        });
        for (thread, costs) in groups {
            let costs = builder.build(view, costs.into_iter());
            let grow = Grow::new(view, &costs, Direction::Callees, options);
            let items: Vec<Item> = costs.roots().iter().map(|&root| (root, costs.total(root))).collect();
            if several {
                let total = items.iter().map(|&(_, cost)| cost).sum();
                if grow.is_small(total) {
                    tree.below.rows += 1;
                    tree.below.own += total;
                } else if !grow.is_cut(&mut tree, total) {
                    let root = tree.push(Call::Comm(thread), total);
                    tree.roots.push(root);
                    grow.under(&mut tree, Some(root), items);
                }
            } else {
                grow.under(&mut tree, None, items);
            }
        }
        tree
    }

    /// Builds the tree from the innermost frames, where the time was spent, to their callers.
    pub fn bottom_up(view: &View<'_>, options: TreeOptions) -> Self {
        Self::bottom_up_from(view, |_| true, usize::MAX, options)
    }

    /// Builds the bottom-up tree of some innermost functions only, at most `deepest` levels deep: with many long stacks
    /// the complete tree would be far too large.
    pub(crate) fn bottom_up_from(
        view: &View<'_>,
        is_wanted: impl Fn(SymbolId) -> bool,
        deepest: usize,
        options: TreeOptions,
    ) -> Self {
        let costs = CostTree::of_all(view);
        let grow = Grow { deepest, ..Grow::new(view, &costs, Direction::Callers, options) };
        let mut tree = Tree::default();
        let items = costs.nodes().map(|node| (node, costs.own(node))).filter(|item| item.1.samples > 0);
        let items = items.filter(|&(node, _)| is_wanted(view.frame(costs.frame(node)).symbol));
        grow.under(&mut tree, None, items.collect());
        tree
    }

    /// Builds the tree of callers of the functions that `function` matches, all paths merged. One root represents all of them; a
    /// sample with several of them on its stack counts once, with the callers of the outermost.
    pub fn callers(view: &View<'_>, function: &Pattern, options: TreeOptions) -> Self {
        let costs = CostTree::of_all(view);
        let grow = Grow::new(view, &costs, Direction::Callers, options);
        let outermost = outermost(view, &costs, &named(view, function));
        around(&grow, outermost.clone(), outermost)
    }

    /// Builds the tree of callees of the functions that `function` matches, all paths merged. A sample with several of them on its stack
    /// counts once, under the outermost; calls directly between them are not shown.
    pub fn callees(view: &View<'_>, function: &Pattern, options: TreeOptions) -> Self {
        let costs = CostTree::of_all(view);
        let grow = Grow::new(view, &costs, Direction::Callees, options);
        let named = named(view, function);
        let outermost = outermost(view, &costs, &named);
        let mut inner: Vec<Item> = outermost.clone();
        let mut at = 0;
        while let Some(&(node, _)) = inner.get(at) {
            let again = costs.callees(node).filter(|&callee| named[costs.frame(callee).0 as usize]);
            inner.extend(again.map(|callee| (callee, Cost::default())));
            at += 1;
        }
        let mut tree = around(&grow, outermost, Vec::new());
        let Some(&root) = tree.roots.first() else { return tree };
        let called = inner
            .iter()
            .flat_map(|&(node, _)| costs.callees(node))
            .filter(|&callee| !named[costs.frame(callee).0 as usize])
            .map(|callee| (callee, costs.total(callee)));
        grow.under(&mut tree, Some(root), called.collect());
        tree.nodes[root].own = inner.iter().map(|&(node, _)| costs.own(node)).sum();
        tree
    }

    fn push(&mut self, call: Call, total: Cost) -> usize {
        let (own, below) = Default::default();
        self.nodes.push(TreeNode { call, total, own, children: Vec::new(), below });
        self.nodes.len() - 1
    }
}

/// Builds a tree whose one root represents `anchor`, grown from `items`.
fn around(grow: &Grow<'_, '_>, anchor: Vec<Item>, items: Vec<Item>) -> Tree {
    let mut tree = Tree::default();
    let total: Cost = anchor.iter().map(|&(_, cost)| cost).sum();
    if let Some(&(first, _)) = anchor.first()
        && !grow.is_cut(&mut tree, total)
    {
        let inlined = anchor.iter().all(|&(node, _)| grow.view.frame(grow.costs.frame(node)).inlined);
        let root = tree.push(Call::Frame { frame: grow.costs.frame(first), inlined }, total);
        tree.roots.push(root);
        grow.follow(&mut tree, root, items);
    }
    tree
}

/// Returns, for each visible frame, whether `function` matches it.
fn named(view: &View<'_>, function: &Pattern) -> Vec<bool> {
    view.frames().map(|(_, frame)| function.matches_function(&frame.name)).collect()
}

/// Returns the nodes of named functions that have no such node above them.
fn outermost(view: &View<'_>, costs: &CostTree, named: &[bool]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut open = [0; 2];
    costs.outermost(
        &mut open,
        |frame| usize::from(named[frame.0 as usize]),
        |node, is_named| {
            if is_named == 1 {
                items.push((node, costs.total(node)));
            }
        },
    );
    // The most expensive function names the root.
    let mut by_symbol: HashMap<SymbolId, Cost> = HashMap::new();
    for &(node, cost) in &items {
        *by_symbol.entry(view.frame(costs.frame(node)).symbol).or_default() += cost;
    }
    items.sort_by_cached_key(|&(node, _)| {
        let frame = view.frame(costs.frame(node));
        (Reverse(by_symbol[&frame.symbol].weight), frame.name.to_string(), frame.inlined, node)
    });
    items
}

fn comm<'v>(view: &'v View<'_>, thread: ThreadId) -> &'v str {
    let profile = view.profile();
    profile.strings.get(profile.threads[thread].comm)
}

fn least(view: &View<'_>, options: TreeOptions) -> f64 {
    view.whole().weight as f64 * options.min_percent / 100.0
}

/// A thread that represents all of its name, and the costs of their stacks.
type CommGroup = (ThreadId, Vec<(NodeId, Cost)>);

fn by_comm(view: &View<'_>) -> Vec<CommGroup> {
    let threads = &view.profile().threads;
    let comm = |thread: ThreadId| threads[thread].comm.index() as u32;
    let any_of: HashMap<u32, ThreadId> = threads.iter().map(|(id, _)| (comm(id), id)).collect();
    let costs = view.costs_by(comm);
    let groups = costs.chunk_by(|a, b| a.0 == b.0).filter_map(|group| {
        let thread = any_of.get(&group.first()?.0)?;
        Some((*thread, group.iter().map(|&(_, node, cost)| (node, cost)).collect()))
    });
    groups.collect()
}

impl CostTree {
    fn of_all(view: &View<'_>) -> Self {
        let costs = view.costs_by(|_| 0);
        TreeBuilder::new(view).build(view, costs.iter().map(|&(_, node, cost)| (node, cost)))
    }
}

/// Grows a tree in one direction.
struct Grow<'a, 'p> {
    view: &'a View<'p>,
    costs: &'a CostTree,
    direction: Direction,
    least: f64,
    most_roots: usize,
    /// Largest depth, in nodes from a root.
    deepest: usize,
}

/// Items of one function, which become one node.
struct Group {
    frame: FrameIndex,
    inlined: bool,
    total: Cost,
    items: Vec<Item>,
}

impl<'a, 'p> Grow<'a, 'p> {
    /// Creates a builder without a depth limit.
    fn new(view: &'a View<'p>, costs: &'a CostTree, direction: Direction, options: TreeOptions) -> Self {
        let (least, most_roots) = (least(view, options), options.most_roots);
        Self { view, costs, direction, least, most_roots, deepest: usize::MAX }
    }

    fn is_small(&self, cost: Cost) -> bool {
        (cost.weight as f64) < self.least
    }

    /// Whether there are too many roots for one more; if so, its cost is added to the cut-off ones.
    fn is_cut(&self, tree: &mut Tree, total: Cost) -> bool {
        let is_cut = tree.roots.len() >= self.most_roots;
        if is_cut {
            tree.cut.rows += 1;
            tree.cut.own += total;
        }
        is_cut
    }

    /// Adds the functions of `items` as children of `parent`, or as roots, with everything below them.
    fn under(&self, tree: &mut Tree, parent: Option<usize>, items: Vec<Item>) {
        let mut work = vec![(parent, items, 1)];
        while let Some((parent, items, depth)) = work.pop() {
            for group in self.group(items) {
                let below = parent.map_or(&mut tree.below, |parent| &mut tree.nodes[parent].below);
                if self.is_small(group.total) {
                    below.rows += 1;
                    below.own += group.total;
                    continue;
                }
                if parent.is_none() && self.is_cut(tree, group.total) {
                    continue;
                }
                let node = tree.push(Call::Frame { frame: group.frame, inlined: group.inlined }, group.total);
                match parent {
                    Some(parent) => tree.nodes[parent].children.push(node),
                    None => tree.roots.push(node),
                }
                if depth < self.deepest {
                    let next = self.next(tree, node, &group.items);
                    work.push((Some(node), next, depth + 1));
                }
            }
        }
    }

    /// Continues from `items`, which make up `node`.
    fn follow(&self, tree: &mut Tree, node: usize, items: Vec<Item>) {
        let next = self.next(tree, node, &items);
        self.under(tree, Some(node), next);
    }

    /// Moves `items` of `node` one step on; paths that end add to the node's own cost.
    fn next(&self, tree: &mut Tree, node: usize, items: &[Item]) -> Vec<Item> {
        let mut next = Vec::new();
        for &(at, cost) in items {
            match self.direction {
                Direction::Callees => {
                    next.extend(self.costs.callees(at).map(|callee| (callee, self.costs.total(callee))));
                    tree.nodes[node].own += self.costs.own(at);
                }
                Direction::Callers => match self.costs.caller(at) {
                    Some(caller) => next.push((caller, cost)),
                    None => tree.nodes[node].own += cost,
                },
            }
        }
        // Callees meet at their callers: merging equal items keeps later steps short.
        next.sort_unstable_by_key(|&(at, _)| at);
        next.dedup_by(|again, first| {
            let same = again.0 == first.0;
            if same {
                first.1 += again.1;
            }
            same
        });
        next
    }

    /// Merges items of the same function; most expensive first, then by name.
    fn group(&self, items: Vec<Item>) -> Vec<Group> {
        let mut numbers: HashMap<SymbolId, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for (at, cost) in items {
            let frame = self.costs.frame(at);
            let shown = self.view.frame(frame);
            let number = *numbers.entry(shown.symbol).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Group { frame, inlined: true, total: Cost::default(), items: Vec::new() });
            }
            let group = &mut groups[number];
            group.frame = group.frame.min(frame);
            group.inlined &= shown.inlined;
            group.total += cost;
            group.items.push((at, cost));
        }
        groups.sort_by(|a, b| {
            let name = |group: &Group| {
                let frame = self.view.frame(group.frame);
                (frame.name.clone(), frame.dso_path, frame.symbol)
            };
            (b.total.weight).cmp(&a.total.weight).then_with(|| name(a).cmp(&name(b)))
        });
        groups
    }
}
