//! The caveats of a view: how many stacks are complete, and why the others are
//! truncated.

use std::cmp::Reverse;
use std::collections::HashMap;

use plumb_profile::{DsoId, Id, StackId, Truncation};

use crate::cost::Cost;
use crate::view::View;

/// The completeness of a view's stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples kept.
    pub samples: u64,
    /// Samples whose stack reaches its root.
    pub complete: u64,
    /// Samples without any stack.
    pub without_stack: u64,
    /// Whether a stack that seems to reach its root may still be truncated (see [`Untold`](plumb_profile::Untold)).
    pub untold: bool,
    /// The reasons why other stacks are truncated, most frequent first.
    pub causes: Vec<CutCause>,
}

/// A reason why stacks are truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutCause {
    /// The reason.
    pub cut: Truncation,
    /// The file that caused it, if known.
    pub dso: Option<DsoId>,
    /// The cost of these samples.
    pub cost: Cost,
}

impl Summary {
    /// Summarizes the view's samples as recorded, including hidden frames.
    pub fn new(view: &View<'_>) -> Self {
        let profile = view.profile();
        let mut roots = Vec::with_capacity(profile.stacks.len());
        let mut lacks_frames = Vec::with_capacity(profile.stacks.len());
        for (_, node) in profile.stacks.iter() {
            let (root, lacks) = match node.caller {
                Some(caller) => (roots[caller.index()], lacks_frames[caller.index()]),
                None => (node.frame, false),
            };
            roots.push(root);
            lacks_frames.push(lacks || profile.is_more_frames(node.frame));
        }
        let mut summary = Summary { untold: profile.meta.untold.cuts, ..Summary::default() };
        let mut causes: HashMap<(Truncation, Option<DsoId>), Cost> = HashMap::new();
        let frame_of = |stack: StackId| profile.frames[roots[stack.index()]];
        for kept in view.samples() {
            summary.samples += 1;
            let Some(stack) = kept.sample.stack else {
                summary.without_stack += 1;
                continue;
            };
            let frame = frame_of(stack);
            let (cut, dso) = match frame.cut() {
                None if lacks_frames[stack.index()] => (Some(Truncation::TooManyFrames), None),
                cut => (cut, frame.dso),
            };
            match cut {
                None => summary.complete += 1,
                Some(cut) => {
                    *causes.entry((cut, dso)).or_default() += Cost::of_sample(kept.sample.weight);
                }
            }
        }
        summary.causes = causes.into_iter().map(|((cut, dso), cost)| CutCause { cut, dso, cost }).collect();
        summary.causes.sort_by_key(|cause| (Reverse(cause.cost.samples), cause.cut, cause.dso));
        summary
    }

    /// Returns the samples with a complete stack, in percent; `None` without samples, or if completeness is unknown.
    pub fn complete_percent(&self) -> Option<f64> {
        (self.samples > 0 && !self.untold).then(|| self.complete as f64 * 100.0 / self.samples as f64)
    }
}
