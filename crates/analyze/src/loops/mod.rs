//! The hot loop of a function: which instructions run again and again, how long one round takes at least, and where its loads get their
//! addresses from.
//!
//! All of it is told from the code and the samples' weights alone; what data the loop works on is in [`access`](crate::access).
//!
//! Invariant: a [`HotLoop`]'s path has each instruction at most once, in the order in which they run.

mod branches;
mod cause;
mod chain;
mod dispatch;
mod forwarding;
mod graph;
mod memory;
mod origin;
mod path;
#[cfg(test)]
mod tests;

pub(crate) use cause::cause;
pub use cause::{LoopCause, LoopFinding};
pub(crate) use chain::{LoopBounds, bounds};
pub use memory::{AccessPattern, CacheSizes};
pub(crate) use origin::{AddressOrigin, Operands, is_step, origin};

use crate::annotate::Annotation;
use graph::{Graph, innermost};
use path::hot_path;

/// The loop that has most of a function's time, without the loops within it.
#[derive(Clone, Debug)]
pub(crate) struct HotLoop {
    /// The instructions of the path that most samples took, by number.
    pub path: Vec<usize>,
    /// All instructions of its blocks, by number.
    pub body: Vec<usize>,
    /// What its instructions cost, of the path or not.
    pub weight: f64,
    /// Whether it is one: not so for code that runs from its beginning to its end.
    pub repeats: bool,
}

impl HotLoop {
    /// The hot loop of a function; where it has none, the blocks with the most time.
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
