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
