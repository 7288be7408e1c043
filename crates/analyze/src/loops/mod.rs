//! The hot loop of a function: which instructions repeat, the least time that an iteration takes, and where its loads get their
//! addresses from.
//!
//! All of it is derived from the code and the samples' weights alone; the data that the loop accesses is in [`access`](crate::access).
//!
//! Invariant: a [`HotLoop`]'s path contains each instruction at most once, in execution order.

pub(crate) mod branches;
mod cause;
mod chain;
pub(crate) mod dispatch;
mod finding;
pub(crate) mod forwarding;
mod graph;
mod memory;
mod origin;
mod path;
#[cfg(test)]
mod tests;

pub(crate) use cause::{CHAIN_TIMES, LEAST_WAITED, MOST_OF_FUNCTION, TLB_REACH, cause};
pub(crate) use chain::{LoopBounds, bounds};
pub use finding::{LoopCause, LoopFinding};
pub use memory::{AccessPattern, CacheSizes};
pub(crate) use origin::{AddressOrigin, origin};

use crate::annotate::Annotation;
use crate::isa::Operands;
use graph::{Graph, innermost};
use path::hot_path;

/// The loop with most of a function's time, without its inner loops.
#[derive(Clone, Debug)]
pub(crate) struct HotLoop {
    /// The instructions of the most sampled path, by index.
    pub path: Vec<usize>,
    /// All instructions of its blocks, by index.
    pub body: Vec<usize>,
    /// Cost of its instructions, on the path or not.
    pub weight: f64,
    /// Whether it is a loop; `false` for straight-line code.
    pub repeats: bool,
}

impl HotLoop {
    /// Returns the hot loop of a function; without a loop, the blocks with the most time.
    pub fn of(annotation: &Annotation) -> Option<HotLoop> {
        let graph = Graph::new(&annotation.listing);
        let found = innermost(annotation, &graph)?;
        let path = hot_path(annotation, &graph, &found);
        let instructions = annotation.listing.instructions().iter().enumerate();
        let body =
            instructions.filter(|(_, one)| found.own.contains(&one.block)).map(|(index, _)| index).collect();
        let repeats = found.header.is_some();
        (!path.is_empty()).then_some(HotLoop { path, body, weight: found.weight, repeats })
    }
}
