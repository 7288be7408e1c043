//! The stacks that processes were started from, from samples of their parents while they forked.
//!
//! A fork record has no stack, so this is statistical: a fork without a sample leaves no trace, and a slower one
//! is sampled more often. Time decides which child a sample belongs to: before the child exists it is the
//! parent's next one, afterwards its last. If equal stacks were aggregated in the kernel, all have the time of the last sample,
//! and so the same child: correct for a parent that starts one program repeatedly, otherwise only approximate.

use std::collections::HashMap;

use plumb_profile::Id;

use super::Program;
use super::family::Family;
use super::part::Part;
use crate::cost::Cost;
use crate::kernel::{Mark, Places};
use crate::view::{NodeId, View};

/// A stack that processes were started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Innermost user frame. `None` if it is unknown.
    pub node: Option<NodeId>,
    /// The samples with this stack.
    pub cost: Cost,
}

/// Finds the parents' samples for each program.
pub(super) fn find(view: &View<'_>, family: &Family, places: &Places<'_>, programs: &mut [Program<'_>]) {
    let mut starts: Vec<HashMap<Option<NodeId>, Cost>> = vec![HashMap::new(); programs.len()];
    for sample in view.samples() {
        let place = places.of(sample.node);
        if Part::of(place) != Part::Fork {
            continue;
        }
        let process = view.profile().threads[sample.sample.thread].process;
        let Some(life) = family.life_of_process[process.index()] else { continue };
        let Some(child) = child_of(family, life, sample.sample.time_ns, place.has(Mark::MAKING)) else {
            continue;
        };
        let at = family.branch_of[child];
        let cost = Cost::of_sample(sample.sample.weight);
        *starts[at].entry(place.user).or_default() += cost;
        programs[at].forking += cost;
        if place.has(Mark::COPYING) {
            programs[at].copying += cost;
        }
    }
    for (program, found) in programs.iter_mut().zip(starts) {
        program.starts = found.into_iter().map(|(node, cost)| Start { node, cost }).collect();
        program.starts.sort_by_key(|start| (std::cmp::Reverse(start.cost), start.node));
    }
}

/// Returns the child that a life was about to fork, or had just forked.
fn child_of(family: &Family, life: usize, time_ns: u64, making: bool) -> Option<usize> {
    let children = &family.children[life];
    let later = children.partition_point(|&child| family.lives[child].start_ns.unwrap_or(0) < time_ns);
    let index = if making { later } else { later.checked_sub(1)? };
    children.get(index).copied()
}
