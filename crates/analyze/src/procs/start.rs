//! From which stacks processes were started, by the samples that hit their parents while they forked.
//!
//! The record of a fork has no stack, so this is statistics: a fork that no sample hit leaves no trace, and one that
//! takes longer is hit more often. Which child a sample belongs to is told by time: before the child is there it is the
//! parent's next one, afterwards its last. Where equal stacks were counted in the kernel, all have the time of the last,
//! and so does their child: right for a parent that starts one program again and again, else only roughly.

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
    /// Its innermost frame, below the kernel's. `None`: nothing is known of it.
    pub node: Option<NodeId>,
    /// The samples that hit it.
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

/// The child that a life was about to fork, or had just forked.
fn child_of(family: &Family, life: usize, time_ns: u64, making: bool) -> Option<usize> {
    let children = &family.children[life];
    let later = children.partition_point(|&child| family.lives[child].start_ns.unwrap_or(0) < time_ns);
    let index = if making { later } else { later.checked_sub(1)? };
    children.get(index).copied()
}
