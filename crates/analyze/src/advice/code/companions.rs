//! Costs that belong to a cause although they are not below it on a stack: what the user's functions do for the
//! cause's lines, and what a runtime does in its own threads to collect what was allocated.

use std::collections::HashSet;

use super::names::Names;
use super::spent::{Code, Spent};
use crate::cost::Cost;
use crate::frame::Kind;
use crate::own_code::SourceLine;

/// Go's allocator; below, its collector, which runs in its own goroutines.
const ALLOCATES: Names = Names { whole: &["runtime.mallocgc"], begin: &["runtime.mallocgc"] };
const COLLECTS: Names =
    Names { whole: &["runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"], begin: &[] };

impl Code<'_, '_> {
    /// Returns the cost of these lines of the user's code, including their callees.
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

    /// Returns the cost of the user's own code, including its callees.
    pub(super) fn of_own_lines(&self) -> Cost {
        let is_own = |node: &u32| self.own().innermost(self.tree().in_view(*node)).is_some();
        self.tree().nodes().filter(is_own).map(|node| self.tree().own(node)).sum()
    }

    /// Returns whether most of `one` is called by `other`.
    pub(super) fn is_for(&self, one: &Spent, other: &Spent) -> bool {
        let is_inside = |node: u32| self.tree().caller(node).is_some_and(|caller| other.has(caller));
        let begins = one.begins().iter();
        let inside: Cost = begins.filter(|(node, _)| is_inside(*node)).map(|&(_, cost)| cost).sum();
        !one.begins().is_empty() && inside.weight.saturating_mul(2) >= one.cost.weight
    }

    /// Returns the cost that belongs to both.
    pub(super) fn common(&self, one: &Spent, other: &Spent) -> Cost {
        let both = |&node: &u32| one.has(node) && other.has(node);
        self.tree().nodes().filter(both).map(|node| self.tree().own(node)).sum()
    }

    /// Returns for each function whether `is_one` holds for its full name.
    pub(super) fn whose_name(&self, is_one: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut holds = vec![false; self.view().symbol_count()];
        for (_, frame) in self.view().frames().filter(|(_, frame)| frame.named && frame.kind == Kind::User) {
            let known = &mut holds[frame.symbol.index()];
            *known = *known || is_one(&frame.name);
        }
        holds
    }

    /// Returns the part of the runtime's own work that belongs to a cause, proportional to its share of allocations.
    /// Zero without a collector that runs beside the program.
    pub(super) fn elsewhere(&self, spent: &Spent) -> Cost {
        let allocated = self.calls_of(&ALLOCATES);
        let collected = self.calls_of(&COLLECTS);
        if allocated.cost.weight == 0 || collected.cost.weight == 0 {
            return Cost::default();
        }
        let part = self.common(&allocated, spent).weight as f64 / allocated.cost.weight as f64;
        // Work without the user's code on the stack: the collector, and waking and stopping threads for it.
        let own_work = |node: &u32| {
            let is_idle = self.view().frame(self.tree().frame(*node)).kind == Kind::Marker;
            !is_idle && !spent.has(*node) && self.own().innermost(self.tree().in_view(*node)).is_none()
        };
        let work: Cost = self.tree().nodes().filter(own_work).map(|node| self.tree().own(node)).sum();
        Cost { weight: (work.weight as f64 * part) as u64, samples: (work.samples as f64 * part) as u64 }
    }
}
