//! The boxes of a differential flame graph: the stacks of both sides merged, with what each side spent in a box.
//!
//! Paths that only one side has are boxes like all others: nothing that vanished is left out. Whether a box changed, with all that it
//! called, is tested as rows are, and corrected over all boxes. Where the table has a row for a box's function, the row decides: boxes that
//! take part in a marked change have its mark, and a box that is mostly the function itself has none if the row has none.
//!
//! Not here: widths, colours, file formats.

use std::collections::HashMap;

use super::change::{Change, Mark};
use super::rows::Subject;
use super::sum::Sum;
use super::{Diff, DiffFunction, DiffRow};
use crate::flame::{BoxKind, Grouping, Label, Labels};
use crate::frame::{FrameIndex, Kind};
use crate::view::{NodeId, View};

/// A function called on one path from the root, in either side.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffBox {
    /// Distance from the root, which has 0. At most one more than that of the box before.
    pub depth: u32,
    /// Index of its label.
    pub label: u32,
    /// Source line of one of its frames, in the label's file; 0 if not known.
    pub line: u32,
    /// Samples in it, not in what it called, of both sides.
    pub samples: u64,
    /// What each side spent in it, not in what it called: normalised means.
    pub own: [f64; 2],
    /// How it changed together with all that it called.
    pub change: Change,
    /// The mark: that of its function's row in the table where the row has a say, otherwise that of `change`.
    pub mark: Mark,
}

/// A differential flame graph.
#[derive(Clone, Debug)]
pub struct DiffFlame<'p> {
    /// What boxes show, in the order of names; the root's label is first.
    pub labels: Vec<Label<'p>>,
    /// The boxes in pre-order, the root first.
    pub boxes: Vec<DiffBox>,
}

/// A box takes part in its function's change with at least this part of it.
const PART: f64 = 0.02;
/// A box is mostly its function itself where at least this part of its time is its own.
const MOSTLY: f64 = 0.5;

/// What makes two boxes under one caller the same: the function, and what the kernel runs it for.
type Same = (u32, Option<BoxKind>);

/// A box before its place is known.
struct Draft {
    label: u32,
    /// Its function; none of the root.
    function: Option<u32>,
    line: u32,
    callees: Vec<u32>,
    /// Per recording.
    own: Vec<Sum>,
}

impl<'p> DiffFlame<'p> {
    /// Whether a box differs by more than chance explains, below the root.
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
                merger.boxes[at as usize].own[index] += sum;
            }
        }
        let (labels, order) = merger.in_order();
        let totals = merger.totals(&order);
        let base = diff.sides[0].len();
        let sums: Vec<[Vec<Sum>; 2]> =
            totals.iter().map(|sums| [sums[..base].to_vec(), sums[base..].to_vec()]).collect();
        let about = |&(_, _, label): &(u32, u32, u32)| (is_kernel(labels[label as usize].kind), None);
        let mut changes = diff.changes(&sums, &order.iter().map(about).collect::<Vec<_>>());
        if let Some(root) = changes.first_mut() {
            *root = diff.whole;
        }
        let rows = rows_by_function(diff);
        let boxes = order.iter().zip(changes);
        let boxes = boxes
            .map(|(&(index, depth, label), change)| {
                let draft = &merger.boxes[index as usize];
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
                DiffBox { depth, label, line: draft.line, samples, own, change, mark }
            })
            .collect();
        DiffFlame { labels, boxes }
    }
}

/// Of rows that are functions, what became of each.
fn rows_by_function<'d>(diff: &'d Diff<'_, '_>) -> HashMap<u32, &'d Change> {
    let of = |row: &'d DiffRow| match row.subject {
        Subject::Function(number) => Some((number, &row.change)),
        _ => None,
    };
    diff.rows.iter().filter_map(of).collect()
}

/// What a box is marked as whose function has a row.
fn mark(own: [f64; 2], change: &Change, row: &Change, diff: &Diff<'_, '_>) -> Mark {
    let alpha = diff.options.alpha;
    // What of the box is in the row.
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
    boxes: Vec<Draft>,
    labels: Vec<Label<'p>>,
    label_numbers: HashMap<Same, u32>,
    callees: HashMap<(u32, u32), u32>,
    /// The box of each node of the present view.
    known: Vec<Option<u32>>,
}

impl<'p> Merger<'p> {
    fn new(recordings: usize) -> Self {
        let mut merger = Merger {
            recordings,
            boxes: Vec::new(),
            labels: vec![Label { name: "all".into(), kind: BoxKind::Root, dso: "", file: "" }],
            label_numbers: HashMap::new(),
            callees: HashMap::new(),
            known: Vec::new(),
        };
        merger.push(0, None);
        merger
    }

    fn begin(&mut self, view: &View<'_>) {
        self.known = vec![None; view.node_count()];
    }

    fn push(&mut self, label: u32, function: Option<u32>) -> u32 {
        let own = vec![Sum::default(); self.recordings];
        self.boxes.push(Draft { label, function, line: 0, callees: Vec::new(), own });
        self.boxes.len() as u32 - 1
    }

    /// The box of a node, made with those of its callers where they are missing.
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
                // One address doesn't name all frames without a symbol that are one function here.
                nameless if !nameless.named && nameless.kind != Kind::Marker => {
                    let name = functions[number as usize].name.clone().into();
                    &Label { name, ..labels.get(labels.of_node(id)).clone() }
                }
                _ => labels.get(labels.of_node(id)),
            };
            let label = self.label(label, number);
            at = self.callee(at, (label, number));
            let draft = &mut self.boxes[at as usize];
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

    fn callee(&mut self, of: u32, (label, function): (u32, u32)) -> u32 {
        if let Some(&known) = self.callees.get(&(of, label)) {
            return known;
        }
        let made = self.push(label, Some(function));
        self.callees.insert((of, label), made);
        self.boxes[of as usize].callees.push(made);
        made
    }

    /// The labels by name, and the boxes in pre-order: their number here, depth, and label's new number.
    fn in_order(&self) -> (Vec<Label<'p>>, Vec<(u32, u32, u32)>) {
        let mut by_name: Vec<usize> = (0..self.labels.len()).collect();
        by_name.sort_by_key(|&index| (index > 0, &self.labels[index]));
        let mut ranks = vec![0_u32; self.labels.len()];
        by_name.iter().enumerate().for_each(|(rank, &index)| ranks[index] = rank as u32);
        let rank = |index: u32| ranks[self.boxes[index as usize].label as usize];
        let mut order = Vec::with_capacity(self.boxes.len());
        let mut open = vec![(0_u32, 0_u32)];
        while let Some((index, depth)) = open.pop() {
            order.push((index, depth, rank(index)));
            let mut callees = self.boxes[index as usize].callees.clone();
            callees.sort_unstable_by_key(|&callee| std::cmp::Reverse(rank(callee)));
            open.extend(callees.into_iter().map(|callee| (callee, depth + 1)));
        }
        (by_name.into_iter().map(|index| self.labels[index].clone()).collect(), order)
    }

    /// What each box cost with all that it called, per recording, in the order of `order`.
    fn totals(&self, order: &[(u32, u32, u32)]) -> Vec<Vec<Sum>> {
        let mut totals: Vec<Vec<Sum>> = self.boxes.iter().map(|draft| draft.own.clone()).collect();
        for &(index, ..) in order.iter().rev() {
            for &callee in &self.boxes[index as usize].callees {
                let below = totals[callee as usize].clone();
                totals[index as usize].iter_mut().zip(below).for_each(|(sum, below)| *sum += below);
            }
        }
        order.iter().map(|&(index, ..)| totals[index as usize].clone()).collect()
    }
}
