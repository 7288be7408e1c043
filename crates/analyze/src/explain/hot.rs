//! The hottest functions and source lines.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::code::ReadCode;
use crate::annotate::{Annotation, HotLine};
use crate::cost::Cost;
use crate::filter::Filter;
use crate::frame::{FrameIndex, Kind, SymbolId, ViewFrame};
use crate::report::{Key, Report, ReportOptions};
use crate::share::{Sampling, Share};
use crate::view::View;

/// A hot function.
#[derive(Clone, Debug)]
pub struct HotFunction {
    /// One of its frames.
    pub frame: FrameIndex,
    /// Whether all its frames are inlined calls.
    pub inlined: bool,
    /// Own cost.
    pub own: Cost,
    /// Share of the own cost.
    pub own_share: Share,
    /// Cost including its callees.
    pub total: Cost,
    /// Share of that cost.
    pub total_share: Share,
    /// Hottest line, where lines are known.
    pub line: Option<(String, u32)>,
}

/// A source line with samples.
#[derive(Clone, Debug)]
pub struct SampledLine {
    /// The file, as the debug information calls it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The innermost function that it is in.
    pub function: String,
    /// Cost of the samples that landed there.
    pub own: Cost,
    /// Share of the total; skid-adjusted where the function's code was read.
    pub share: Share,
    /// Share of the function's own cost, in percent; if its code was read, of the function that it was inlined into.
    pub of_function: f64,
    /// Whether the shares are skid-adjusted.
    pub is_adjusted: bool,
}

/// A source location: file and line.
type Place<'p> = (&'p str, u32);

/// The own costs of functions and lines.
struct Leaves<'p> {
    /// By function, then by line.
    lines: HashMap<SymbolId, HashMap<Place<'p>, (FrameIndex, Cost)>>,
    /// By function.
    own: HashMap<SymbolId, Cost>,
}

impl<'p> Leaves<'p> {
    /// Sums up all leaves except those that are `left_out`.
    fn new(view: &View<'p>, left_out: impl Fn(&ViewFrame<'_>) -> bool) -> Self {
        let mut leaves = Leaves { lines: HashMap::new(), own: HashMap::new() };
        for (_, node, cost) in view.costs_by(|_| 0) {
            let index = view.node(node).frame;
            let frame = view.frame(index);
            *leaves.own.entry(frame.symbol).or_default() += cost;
            if frame.line > 0 && !left_out(frame) {
                let lines = leaves.lines.entry(frame.symbol).or_default();
                lines.entry((frame.file, frame.line)).or_insert((index, Cost::default())).1 += cost;
            }
        }
        leaves
    }

    /// Returns a function's line with the most samples.
    fn line_of(&self, symbol: SymbolId) -> Option<Place<'p>> {
        let lines = self.lines.get(&symbol)?;
        lines.iter().map(|(&place, &(_, cost))| (Reverse(cost), place)).min().map(|(_, place)| place)
    }
}

/// Returns the functions with the highest own cost, at most `most`, and none below a share in percent.
pub(super) fn functions(
    view: &View<'_>,
    filter: &Filter,
    code: &[ReadCode<'_>],
    sampling: &Sampling,
    (most, least_percent): (usize, f64),
) -> Vec<HotFunction> {
    let leaves = Leaves::new(view, |_| false);
    let mut read: Vec<SampledLine> =
        code.iter().flat_map(|code| of_code(code.annotation, sampling)).collect();
    read.sort_by(|one, other| other.share.percent.total_cmp(&one.share.percent));
    let line = |frame: &ViewFrame<'_>| {
        let adjusted = read.iter().find(|line| line.function == *frame.name);
        let as_sampled = || leaves.line_of(frame.symbol).map(|(file, line)| (file.to_owned(), line));
        adjusted.map(|line| (line.file.clone(), line.line)).or_else(as_sampled)
    };
    let keys = vec![Key::Dso, Key::Symbol];
    let report =
        Report::new(view, filter, &ReportOptions { keys, children: false, min_percent: least_percent });
    let is_code = |frame: FrameIndex| view.frame(frame).kind != Kind::Marker;
    let rows = report.rows.iter().filter(|row| is_code(row.key.frame)).take(most);
    rows.map(|row| HotFunction {
        frame: row.key.frame,
        inlined: row.inlined,
        own: row.own,
        own_share: sampling.share(row.own),
        total: row.total,
        total_share: sampling.share(row.total),
        line: line(view.frame(row.key.frame)),
    })
    .collect()
}

/// Returns the lines with the highest own cost, with the same limits: from the instructions of functions whose code was read, from samples
/// for the others.
pub(super) fn lines(
    view: &View<'_>,
    code: &[ReadCode<'_>],
    sampling: &Sampling,
    (most, least_percent): (usize, f64),
) -> Vec<SampledLine> {
    let mut lines: Vec<SampledLine> =
        code.iter().flat_map(|code| of_code(code.annotation, sampling)).collect();
    let profile = view.profile();
    let is_read = |frame: &ViewFrame<'_>| {
        frame.frame.is_some_and(|frame| code.iter().any(|code| code.function.has(profile, frame)))
    };
    let leaves = Leaves::new(view, is_read);
    for (symbol, places) in &leaves.lines {
        let own = leaves.own.get(symbol).copied().unwrap_or_default();
        lines.extend(places.iter().map(|(&(file, line), &(frame, cost))| SampledLine {
            file: file.to_owned(),
            line,
            function: view.frame(frame).name.to_string(),
            own: cost,
            share: sampling.share(cost),
            of_function: cost.percent_of(own),
            is_adjusted: false,
        }));
    }
    lines.retain(|line| line.share.percent >= least_percent);
    lines.sort_by(|one, other| {
        let place = |line: &SampledLine| (line.file.clone(), line.line, line.function.clone());
        other.share.percent.total_cmp(&one.share.percent).then_with(|| place(one).cmp(&place(other)))
    });
    lines.truncate(most);
    lines
}

/// Returns the lines of a function whose code was read.
fn of_code(annotation: &Annotation, sampling: &Sampling) -> Vec<SampledLine> {
    let line = |line: HotLine| SampledLine {
        share: sampling.at(annotation.share_of_whole(line.adjusted)),
        of_function: annotation.share(line.adjusted),
        own: line.own,
        file: line.place.file,
        line: line.place.line,
        function: line.place.function,
        is_adjusted: annotation.is_adjusted,
    };
    annotation.hot_lines().into_iter().map(line).collect()
}
