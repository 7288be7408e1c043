//! What calls of functions took, in them and all that they called.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use plumb_profile::DsoId;

use super::names::{Names, plain};
use crate::annotate::Class;
use crate::cost::Cost;
use crate::cost_tree::{CostTree, TreeBuilder};
use crate::explain::ReadCode;
use crate::frame::{FrameIndex, Kind, SymbolId, ViewFrame};
use crate::kernel::{Cause, Places};
use crate::view::View;

/// Functions and callers that are named.
const NAMED: usize = 3;
/// Instructions count in functions with at least this share of all, in percent, and together have at least this share of the function.
const LEAST_FUNCTION: f64 = 5.0;
const LEAST_OF_FUNCTION: f64 = 20.0;

/// What rules look at.
pub(super) struct Code<'a, 'p> {
    view: &'a View<'p>,
    read: &'a [ReadCode<'a>],
    /// Files that were not optimised.
    unoptimised: HashSet<DsoId>,
    tree: CostTree,
    /// By function, as [`Names`] want it; empty for what is no user code.
    names: Vec<String>,
}

/// What went into what a rule is about.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) cost: Cost,
    /// The functions, and what each took.
    pub(super) functions: Vec<(FrameIndex, Cost)>,
    /// Who called them.
    pub(super) callers: Vec<(FrameIndex, Cost)>,
    /// By innermost function.
    pub(super) own: Vec<(SymbolId, Cost)>,
    /// Per node of the tree whether it is a part of it.
    inside: Vec<bool>,
}

impl<'a, 'p> Code<'a, 'p> {
    pub(super) fn new(view: &'a View<'p>, read: &'a [ReadCode<'a>]) -> Self {
        let costs = view.costs_by(|_| 0);
        let tree = TreeBuilder::new(view).build(view, costs.iter().map(|&(_, node, cost)| (node, cost)));
        let mut names = vec![String::new(); view.symbol_count()];
        for node in tree.nodes() {
            let frame = view.frame(tree.frame(node));
            let name = &mut names[frame.symbol.index()];
            if name.is_empty() && frame.named && frame.kind == Kind::User {
                *name = plain(&frame.name);
            }
        }
        Self { view, read, unoptimised: unoptimised(read), tree, names }
    }

    /// What went into calls of these functions: each sample once, where the outermost of them is on its stack.
    pub(super) fn calls_of(&self, functions: &Names) -> Spent {
        let is_one: Vec<bool> =
            self.names.iter().map(|name| !name.is_empty() && functions.has(name)).collect();
        if !is_one.contains(&true) {
            return Spent::default();
        }
        self.below(|node| is_one[self.symbol(node).index()])
    }

    /// What page faults took, by the functions that they happened in.
    pub(super) fn page_faults(&self) -> Spent {
        let places = Places::new(self.view);
        let is_fault = |node| {
            let place = places.of(self.tree.in_view(node));
            place.cause(None) == Cause::Fault
        };
        self.below(is_fault)
    }

    /// What instructions took for which `is_one` holds, by their class and their share of the function in percent, where they have a good
    /// part of a function that has some of all.
    pub(super) fn instructions(&self, is_one: impl Fn(&Class, f64) -> bool) -> Spent {
        let mut spent = Spent::default();
        let is_large =
            |code: &ReadCode<'_>| code.function.own.percent_of(self.view.whole()) >= LEAST_FUNCTION;
        // What isn't optimised is full of instructions that needn't be there.
        let is_meant =
            |code: &&ReadCode<'_>| is_large(code) && !self.unoptimised.contains(&code.function.dso);
        for code in self.read.iter().filter(is_meant) {
            let annotation = code.annotation;
            let rows = annotation.listing.instructions().iter().zip(&annotation.rows);
            let those = rows.filter(|(one, row)| is_one(&one.class, annotation.share(row.adjusted)));
            let weight: f64 = those.map(|(_, row)| row.adjusted).sum();
            if annotation.share(weight) < LEAST_OF_FUNCTION {
                continue;
            }
            let samples = annotation.own.samples as f64 * annotation.share(weight) / 100.0;
            let cost = Cost { weight: weight as u64, samples: samples as u64 };
            spent.cost += cost;
            spent.functions.extend(self.frame_of(code).map(|frame| (frame, cost)));
        }
        spent.functions.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        spent.functions.truncate(NAMED);
        spent
    }

    /// What the code of files took that were not optimised.
    pub(super) fn unoptimised_files(&self) -> Spent {
        let is_slow = |dso: Option<DsoId>| dso.is_some_and(|dso| self.unoptimised.contains(&dso));
        let frame = |node| self.view.frame(self.tree.frame(node));
        let own =
            self.tree.nodes().filter(|&node| self.tree.own(node).samples > 0 && is_slow(frame(node).dso));
        let mut spent = Spent::default();
        let (mut sums, mut by_function) = (Sums::default(), HashMap::new());
        for node in own {
            spent.cost += self.tree.own(node);
            sums.add(self.view, self.tree.frame(node), self.tree.own(node));
            *by_function.entry(self.symbol(node)).or_default() += self.tree.own(node);
        }
        Spent { functions: sums.first(), own: by_function.into_iter().collect(), ..spent }
    }

    /// A frame of a function whose code was read: of the function itself, not of what was inlined into it.
    fn frame_of(&self, code: &ReadCode<'_>) -> Option<FrameIndex> {
        let profile = self.view.profile();
        let is_it = |frame: &ViewFrame<'_>| {
            !frame.inlined && frame.frame.is_some_and(|frame| code.function.has(profile, frame))
        };
        self.view.frames().find(|(_, frame)| is_it(frame)).map(|(index, _)| index)
    }

    /// What went into both.
    pub(super) fn common(&self, one: &Spent, other: &Spent) -> Cost {
        let both = one.inside.iter().zip(&other.inside).map(|(one, other)| *one && *other);
        self.tree.nodes().zip(both).filter(|(_, both)| *both).map(|(node, _)| self.tree.own(node)).sum()
    }

    /// What went through nodes for which `is_one` holds, the outermost of each stack.
    fn below(&self, is_one: impl Fn(u32) -> bool) -> Spent {
        let tree = &self.tree;
        let mut inside: Vec<bool> = Vec::new();
        let (mut functions, mut callers, mut own) = (Sums::default(), Sums::default(), HashMap::new());
        let mut cost = Cost::default();
        for node in tree.nodes() {
            // Callers come before what they call.
            let is_below = tree.caller(node).is_some_and(|caller| inside[caller as usize]);
            let is_outermost = !is_below && is_one(node);
            inside.push(is_below || is_outermost);
            if is_outermost {
                cost += tree.total(node);
                functions.add(self.view, tree.frame(node), tree.total(node));
                if let Some(caller) = tree.caller(node) {
                    callers.add(self.view, tree.frame(caller), tree.total(node));
                }
            }
            if is_below || is_outermost {
                *own.entry(self.symbol(node)).or_default() += tree.own(node);
            }
        }
        let own = own.into_iter().filter(|(_, cost): &(_, Cost)| cost.samples > 0).collect();
        Spent { cost, functions: functions.first(), callers: callers.first(), own, inside }
    }

    fn symbol(&self, node: u32) -> SymbolId {
        self.view.frame(self.tree.frame(node)).symbol
    }
}

/// Files of which most hot code that was read is not optimised, in two functions at least: one alone may be made so.
fn unoptimised(read: &[ReadCode<'_>]) -> HashSet<DsoId> {
    let mut files: HashMap<DsoId, (usize, u64, u64)> = HashMap::new();
    for code in read {
        let (count, slow, all) = files.entry(code.function.dso).or_default();
        let own = code.function.own.weight;
        *all += own;
        if code.annotation.listing.is_unoptimised() {
            *count += 1;
            *slow += own;
        }
    }
    files.retain(|_, (count, slow, all)| *count >= 2 && slow.saturating_mul(2) >= *all);
    files.into_keys().collect()
}

/// Costs by function: those of one name in one file are one, as they are shown without what tells them apart.
#[derive(Default)]
struct Sums<'a>(HashMap<(&'a str, &'a str), (FrameIndex, Cost)>);

impl<'a> Sums<'a> {
    fn add(&mut self, view: &'a View<'_>, index: FrameIndex, cost: Cost) {
        let frame = view.frame(index);
        let sum = self.0.entry((&frame.name, frame.dso_path)).or_insert((index, Cost::default()));
        sum.1 += cost;
        // Whichever comes first would depend on the order of stacks.
        sum.0 = sum.0.min(index);
    }

    /// The few that cost most.
    fn first(self) -> Vec<(FrameIndex, Cost)> {
        let mut sums: Vec<(FrameIndex, Cost)> = self.0.into_values().collect();
        sums.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        sums.truncate(NAMED);
        sums
    }
}
