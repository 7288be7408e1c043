//! How far a recording is to be trusted: what was sampled, lost, cut and left without a name.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cost::Cost;
use crate::coverage::coverage;
use crate::filter::Filter;
use crate::frame::Kind;
use crate::share::{Sampling, Share};
use crate::summary::Summary;
use crate::view::View;

/// What is known of a recording's worth.
#[derive(Clone, Debug)]
pub struct Quality<'p> {
    /// How complete stacks are, and why others are not.
    pub stacks: Summary,
    /// Samples taken of those that the target's processor time should have given, in percent.
    pub coverage: Option<f64>,
    /// What samples hit in code without a name, by file.
    pub nameless: Vec<(&'p str, Cost)>,
    /// All of it together.
    pub nameless_share: Share,
    /// What samples hit in user code of which no line is known, in percent of all that was hit in user code.
    pub without_line: f64,
    /// How well a share of 10% is known.
    pub tenth: Share,
    /// Times are left out in which something disturbed the target.
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
