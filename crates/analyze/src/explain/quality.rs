//! The quality of a recording: samples taken, lost, truncated and without a name.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cost::Cost;
use crate::coverage::coverage;
use crate::filter::Filter;
use crate::frame::Kind;
use crate::share::{Sampling, Share};
use crate::summary::Summary;
use crate::view::View;

/// The quality figures of a recording.
#[derive(Clone, Debug)]
pub struct Quality<'p> {
    /// Completeness of stacks, and the reasons for truncation.
    pub stacks: Summary,
    /// Samples taken in percent of those due for the target's CPU time.
    pub coverage: Option<f64>,
    /// Cost of samples in code without a name, by file.
    pub nameless: Vec<(&'p str, Cost)>,
    /// Total of `nameless`, as a share.
    pub nameless_share: Share,
    /// Share of samples without a known line in user code, in percent of all samples there.
    pub without_line: f64,
    /// A share of 10% with its confidence interval.
    pub tenth: Share,
    /// Whether times in which the target was disturbed are left out.
    pub is_partly_left_out: bool,
}

impl<'p> Quality<'p> {
    pub(super) fn new(view: &View<'p>, filter: &Filter, sampling: &Sampling) -> Self {
        let mut files: HashMap<&'p str, Cost> = HashMap::new();
        let (mut user, mut without_line) = (Cost::default(), Cost::default());
        for (_, node, cost) in view.costs_by(|_| 0) {
            let frame = view.frame(view.node(node).frame);
            if frame.kind == Kind::User {
                user += cost;
                without_line += if frame.line == 0 { cost } else { Cost::default() };
            }
            if !frame.named && frame.kind != Kind::Marker {
                *files.entry(frame.dso_path).or_default() += cost;
            }
        }
        let mut nameless: Vec<(&str, Cost)> = files.into_iter().collect();
        nameless.sort_by_key(|&(path, cost)| (Reverse(cost), path));
        Quality {
            is_partly_left_out: !filter.except.is_empty(),
            stacks: Summary::new(view),
            coverage: coverage(view.profile(), filter),
            nameless_share: sampling.share(nameless.iter().map(|&(_, cost)| cost).sum()),
            nameless,
            without_line: without_line.percent_of(user),
            tenth: sampling.at(10.0),
        }
    }
}
