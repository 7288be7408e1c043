//! What goes with a cause, though none of it is below it on a stack: what the user's functions do for the lines that it is on, and what a
//! runtime does in threads of its own to collect what was allocated.

use std::collections::HashSet;

use super::names::Names;
use super::spent::{Code, Spent};
use crate::cost::Cost;
use crate::frame::Kind;
use crate::own_code::SourceLine;

/// Go's allocator, and its collector in goroutines of its own.
const ALLOCATES: Names = Names { whole: &["runtime.mallocgc"], begin: &["runtime.mallocgc"] };
const COLLECTS: Names =
    Names { whole: &["runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"], begin: &[] };

impl Code<'_, '_> {
    /// What was done for these lines of the user's code, and for what they call.
    pub(super) fn through(&self, lines: &HashSet<SourceLine<'_>>) -> Cost {
        let tree = self.tree();
        let mut inside: Vec<bool> = Vec::new();
        let mut sum = Cost::default();
        for node in tree.nodes() {
            let is_below = tree.caller(node).is_some_and(|caller| inside[caller as usize]);
            let is_of_line = || {
                self.is_own(node)
                    && self
                        .own()
                        .line(self.view(), tree.in_view(node))
                        .is_some_and(|line| lines.contains(&line))
            };
            inside.push(is_below || is_of_line());
            if inside[node as usize] {
                sum += tree.own(node);
            }
        }
        sum
    }

    /// What is done for the user's own code, in it and in what it calls.
    pub(super) fn of_own_lines(&self) -> Cost {
        let is_own = |node: &u32| self.own().innermost(self.tree().in_view(*node)).is_some();
        self.tree().nodes().filter(is_own).map(|node| self.tree().own(node)).sum()
    }

    /// Whether most of one is done for the other: is called by it.
    pub(super) fn is_for(&self, one: &Spent, other: &Spent) -> bool {
        let is_inside = |node: u32| self.tree().caller(node).is_some_and(|caller| other.has(caller));
        let begins = one.begins().iter();
        let inside: Cost = begins.filter(|(node, _)| is_inside(*node)).map(|&(_, cost)| cost).sum();
        !one.begins().is_empty() && inside.weight.saturating_mul(2) >= one.cost.weight
    }

    /// What went into both.
    pub(super) fn common(&self, one: &Spent, other: &Spent) -> Cost {
        let both = |&node: &u32| one.has(node) && other.has(node);
        self.tree().nodes().filter(both).map(|node| self.tree().own(node)).sum()
    }

    /// For each function whether `is_one` holds for its whole name.
    pub(super) fn whose_name(&self, is_one: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut holds = vec![false; self.view().symbol_count()];
        for (_, frame) in self.view().frames().filter(|(_, frame)| frame.named && frame.kind == Kind::User) {
            let known = &mut holds[frame.symbol.index()];
            *known = *known || is_one(&frame.name);
        }
        holds
    }

    /// The part of the runtime's own work that is done for a cause: as much as it has of what is allocated. Nothing without a collector
    /// that works beside the program.
    pub(super) fn elsewhere(&self, spent: &Spent) -> Cost {
        let allocated = self.calls_of(&ALLOCATES);
        let collected = self.calls_of(&COLLECTS);
        if allocated.cost.weight == 0 || collected.cost.weight == 0 {
            return Cost::default();
        }
        let part = self.common(&allocated, spent).weight as f64 / allocated.cost.weight as f64;
        // Of what no code of the user is on the stack of: the collector, and waking and stopping threads for it.
        let own_work = |node: &u32| {
            let is_idle = self.view().frame(self.tree().frame(*node)).kind == Kind::Marker;
            !is_idle && !spent.has(*node) && self.own().innermost(self.tree().in_view(*node)).is_none()
        };
        let work: Cost = self.tree().nodes().filter(own_work).map(|node| self.tree().own(node)).sum();
        Cost { weight: (work.weight as f64 * part) as u64, samples: (work.samples as f64 * part) as u64 }
    }
}
