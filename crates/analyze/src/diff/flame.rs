//! The boxes of a differential flame graph: the stacks of both sides merged, with each side's cost of a box.
//!
//! Paths that only one side has are boxes like all others, so vanished code stays visible. A box's change, including its
//! callees, is tested as rows are, and corrected over all boxes. If the table has a row for a box's function, the row decides: a box that
//! contributes to a marked change has its mark, and a box that is mostly the function itself has none if the row has none.
//!
//! Elsewhere: widths, colours, file formats.

use std::collections::HashMap;

use super::change::{Change, Mark};
use super::rows::Subject;
use super::sum::Sum;
use super::{Diff, DiffFunction, DiffRow};
use crate::flame::{BoxKind, Drafts, Grouping, Label, Labels, sorted};
use crate::frame::{FrameIndex, Kind};
use crate::view::{NodeId, View};

/// A function called on one path from the root, in either side.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffBox {
    /// Distance from the root, whose depth is 0. At most one more than that of the previous box.
    pub depth: u32,
    /// Index of its label.
    pub label: u32,
    /// Source line of one of its frames, in the label's file; 0 if not known.
    pub line: u32,
    /// Own samples of both sides, without callees.
    pub samples: u64,
    /// Own cost in each side, without callees: normalized means.
    pub own: [f64; 2],
    /// Change of its cost including callees.
    pub change: Change,
    /// The mark: that of its function's row in the table if the row decides, otherwise that of `change`.
    pub mark: Mark,
}

/// A differential flame graph.
#[derive(Clone, Debug)]
pub struct DiffFlame<'p> {
    /// The labels of boxes, sorted by name; the root's label is first.
    pub labels: Vec<Label<'p>>,
    /// The boxes in pre-order, the root first.
    pub boxes: Vec<DiffBox>,
}

/// Least part of a function's change for a box to have its mark.
const PART: f64 = 0.02;
/// Least own part of a box's time for the box to count as mostly the function itself.
const MOSTLY: f64 = 0.5;

/// Identifies a box among its siblings: the function, and what the kernel runs it for.
type Same = (u32, Option<BoxKind>);

/// The parts of a box before the boxes are ordered.
struct Content {
    /// Function of the box; `None` for the root.
    function: Option<u32>,
    line: u32,
    /// Own cost, per recording.
    own: Vec<Sum>,
}

impl<'p> DiffFlame<'p> {
    /// Whether any box below the root changed significantly.
    pub fn differs(&self) -> bool {
        self.boxes.iter().skip(1).any(|one| one.mark != Mark::Noise)
    }

    /// Merges the stacks of both sides.
    pub fn new(diff: &Diff<'_, 'p>) -> Self {
        let mut merger = Merger::new(diff.spots.len());
        for (index, (view, spots)) in diff.views().zip(&diff.spots).enumerate() {
            merger.begin(view);
            let labels = Labels::new(view, Grouping::None);
            for &((node, ..), sum) in spots {
                let function = |frame| diff.functions.of(index, frame);
                let at = merger.find(view, &labels, node, (&function, diff.functions()));
                merger.drafts.boxes[at as usize].content.own[index] += sum;
            }
        }
        let (labels, ranks) = sorted(&merger.labels, 0..merger.labels.len() as u32);
        let order = merger.drafts.in_order(&ranks);
        let totals = merger.totals();
        let base = diff.sides[0].len();
        let sides = |sums: &[Sum]| [sums[..base].to_vec(), sums[base..].to_vec()];
        let sums: Vec<[Vec<Sum>; 2]> =
            order.iter().map(|&(index, _)| sides(&totals[index as usize])).collect();
        let label_of = |index: u32| ranks[merger.drafts.boxes[index as usize].label as usize];
        let about = |&(index, _): &(u32, u32)| (is_kernel(labels[label_of(index) as usize].kind), None);
        let mut changes = diff.changes(&sums, &order.iter().map(about).collect::<Vec<_>>());
        if let Some(root) = changes.first_mut() {
            *root = diff.whole;
        }
        let rows = rows_by_function(diff);
        let boxes = order.iter().zip(changes);
        let boxes = boxes
            .map(|(&(index, depth), change)| {
                let draft = &merger.drafts.boxes[index as usize].content;
                let mean = |side: usize| {
                    let runs = &diff.runs[side];
                    let own = &draft.own[if side == 0 { 0..base } else { base..draft.own.len() }];
                    let sum: f64 = own.iter().zip(runs).map(|(sum, run)| sum.weight * run.factor).sum();
                    sum / runs.len() as f64
                };
                let samples = draft.own.iter().map(|sum| sum.samples).sum();
                let own = [mean(0), mean(1)];
                let row = draft.function.and_then(|number| rows.get(&number));
                let mark =
                    row.map_or_else(|| change.mark(diff.options.alpha), |row| mark(own, &change, row, diff));
                DiffBox { depth, label: label_of(index), line: draft.line, samples, own, change, mark }
            })
            .collect();
        DiffFlame { labels, boxes }
    }
}

/// Returns the change of each row that is a function.
fn rows_by_function<'d>(diff: &'d Diff<'_, '_>) -> HashMap<u32, &'d Change> {
    let of = |row: &'d DiffRow| match row.subject {
        Subject::Function(number) => Some((number, &row.change)),
        _ => None,
    };
    diff.rows.iter().filter_map(of).collect()
}

/// Returns the mark of a box whose function has a row.
fn mark(own: [f64; 2], change: &Change, row: &Change, diff: &Diff<'_, '_>) -> Mark {
    let alpha = diff.options.alpha;
    // The part of the box's change that counts in the row.
    let [base, new] = if diff.options.children { change.value } else { own };
    let part = (new - base) / row.difference();
    match row.mark(alpha) {
        Mark::Noise => {}
        found if part >= PART => return found,
        _ => {}
    }
    let all = change.value[0].max(change.value[1]);
    if base.max(new) >= MOSTLY * all { Mark::Noise } else { change.mark(alpha) }
}

fn is_kernel(kind: BoxKind) -> bool {
    matches!(kind, BoxKind::Kernel | BoxKind::Fault | BoxKind::Process | BoxKind::Interrupt)
}

/// Maps nodes of several views to boxes.
struct Merger<'p> {
    recordings: usize,
    drafts: Drafts<Content>,
    labels: Vec<Label<'p>>,
    label_numbers: HashMap<Same, u32>,
    /// The box of each node of the current view.
    known: Vec<Option<u32>>,
}

impl<'p> Merger<'p> {
    fn new(recordings: usize) -> Self {
        let root = Content { function: None, line: 0, own: vec![Sum::default(); recordings] };
        Merger {
            recordings,
            drafts: Drafts::new(root),
            labels: vec![Label { name: "all".into(), kind: BoxKind::Root, dso: "", file: "" }],
            label_numbers: HashMap::new(),
            known: Vec::new(),
        }
    }

    fn begin(&mut self, view: &View<'_>) {
        self.known = vec![None; view.node_count()];
    }

    /// Returns the box of a node, adding it and missing callers.
    fn find(
        &mut self,
        view: &View<'p>,
        labels: &Labels<'p>,
        node: NodeId,
        (function, functions): (&dyn Fn(FrameIndex) -> u32, &[DiffFunction]),
    ) -> u32 {
        let callers = std::iter::successors(Some(node), |&id| view.node(id).caller);
        let missing: Vec<NodeId> = callers.take_while(|id| self.known[id.index()].is_none()).collect();
        let top = missing.last().map_or(Some(node), |&id| view.node(id).caller);
        let mut at = top.and_then(|id| self.known[id.index()]).unwrap_or(0);
        for id in missing.into_iter().rev() {
            let frame = view.node(id).frame;
            let number = function(frame);
            let label = match view.frame(frame) {
                // A function without a symbol may merge frames of several addresses, so an address cannot label it.
                nameless if !nameless.named && nameless.kind != Kind::Marker => {
                    let name = functions[number as usize].name.clone().into();
                    &Label { name, ..labels.get(labels.of_node(id)).clone() }
                }
                _ => labels.get(labels.of_node(id)),
            };
            let label = self.label(label, number);
            let own = || vec![Sum::default(); self.recordings];
            at = self.drafts.callee(at, label, || Content { function: Some(number), line: 0, own: own() });
            let draft = &mut self.drafts.boxes[at as usize].content;
            if draft.line == 0 && view.frame(frame).file == self.labels[label as usize].file {
                draft.line = view.frame(frame).line;
            }
            self.known[id.index()] = Some(at);
        }
        at
    }

    fn label(&mut self, label: &Label<'p>, function: u32) -> u32 {
        let next = self.labels.len() as u32;
        let same = (function, is_kernel(label.kind).then_some(label.kind));
        let number = *self.label_numbers.entry(same).or_insert(next);
        if number == next {
            self.labels.push(label.clone());
        }
        number
    }

    /// Returns each box's total cost including callees, per recording.
    fn totals(&self) -> Vec<Vec<Sum>> {
        let callees = self.drafts.callees();
        let mut totals: Vec<Vec<Sum>> =
            self.drafts.boxes.iter().map(|draft| draft.content.own.clone()).collect();
        for index in (0..totals.len()).rev() {
            let (callers, below) = totals.split_at_mut(index + 1);
            for &callee in callees.of(Some(index as u32)) {
                let below = &below[callee as usize - index - 1];
                callers[index].iter_mut().zip(below).for_each(|(sum, below)| *sum += *below);
            }
        }
        totals
    }
}
