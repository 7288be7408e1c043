//! The boxes of a flame graph: the tree of merged stacks, with children sorted by name, so that the same
//! code is in the same place in every picture.
//!
//! Invariant: boxes are in pre-order (a box directly follows its caller or the last box below the caller's earlier
//! callees), and the boxes' own costs add up to the view's part.
//!
//! Elsewhere: widths, colours, file formats.

mod chart;
mod drafts;
mod heaviest;
mod label;

use std::collections::HashMap;

use plumb_profile::ThreadId;

pub use chart::FlameChart;
pub(crate) use drafts::Drafts;
pub use label::{BoxKind, Label};
pub(crate) use label::{Labels, sorted};

use crate::cost::Cost;
use crate::frame::FrameIndex;
use crate::view::{NodeId, View};

/// The top level of boxes, below the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// None: equal stacks of two threads are merged.
    #[default]
    None,
    /// By thread.
    Thread,
    /// By thread name.
    Comm,
    /// By process.
    Process,
}

/// A function called on one path from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameBox {
    /// Distance from the root, whose depth is 0. At most one more than that of the previous box.
    pub depth: u32,
    /// Index of its label.
    pub label: u32,
    /// Source line with most of the box's cost, in the label's file; 0 if not known.
    pub line: u32,
    /// Own cost, without callees.
    pub own: Cost,
}

/// A flame graph.
#[derive(Clone, Debug)]
pub struct Flame<'p> {
    /// The labels of boxes, sorted by name; the root's label is first.
    pub labels: Vec<Label<'p>>,
    /// The boxes, the root first.
    pub boxes: Vec<FlameBox>,
    /// Number of boxes that are summed up as smaller ones.
    pub left_out: usize,
}

impl<'p> Flame<'p> {
    /// Merges the stacks of `view`.
    pub fn new(view: &View<'p>, grouping: Grouping) -> Self {
        let labels = Labels::new(view, grouping);
        let mut merger = Merger::new(view, &labels);
        for (thread, node, cost) in view.costs() {
            merger.add(thread, node, cost);
        }
        let lines = merger.lines();
        let drafts = merger.drafts;
        let (labels, ranks) = labels.sorted(drafts.boxes.iter().map(|draft| draft.label));
        let boxes = drafts.in_order(&ranks).into_iter().map(|(index, depth)| {
            let draft = &drafts.boxes[index as usize];
            let label = ranks[draft.label as usize];
            FlameBox { depth, label, line: lines[index as usize], own: draft.content }
        });
        Flame { labels, boxes: boxes.collect(), left_out: 0 }
    }

    /// Returns the cost of all boxes together.
    pub fn total(&self) -> Cost {
        self.boxes.iter().map(|one| one.own).sum()
    }

    /// Returns the cost of each box including its callees, in the order of the boxes.
    pub fn totals(&self) -> Vec<Cost> {
        let mut totals = vec![Cost::default(); self.boxes.len()];
        // Costs of boxes whose caller has not been reached yet, by depth.
        let mut waiting: Vec<Cost> = Vec::new();
        for (one, total) in self.boxes.iter().zip(&mut totals).rev() {
            let depth = one.depth as usize;
            waiting.resize((depth + 2).max(waiting.len()), Cost::default());
            *total = one.own;
            *total += std::mem::take(&mut waiting[depth + 1]);
            waiting[depth] += *total;
        }
        totals
    }

    /// Returns the weight of a sample if all samples in the picture have the same weight.
    pub fn weight_of_each(&self) -> Option<u64> {
        let total = self.total();
        let each = total.weight.checked_div(total.samples)?;
        let same = |own: Cost| own.samples.checked_mul(each) == Some(own.weight);
        self.boxes.iter().all(|one| same(one.own)).then_some(each)
    }

    /// Calls `each` for every box with a cost of its own, with the labels from below the root to the box.
    pub fn for_each_stack(&self, mut each: impl FnMut(&[&Label<'p>], Cost)) {
        let mut path: Vec<&Label<'p>> = Vec::new();
        for one in self.boxes.iter().skip(1) {
            path.truncate((one.depth as usize).saturating_sub(1));
            path.push(&self.labels[one.label as usize]);
            if one.own.samples > 0 {
                each(&path, one.own);
            }
        }
    }
}

/// A node of the view's tree within one group.
struct Passage {
    caller: Option<u32>,
    at: u32,
    frame: FrameIndex,
    through: Cost,
}

/// Maps nodes of the view to boxes; a function has one node for each address.
struct Merger<'v, 'p> {
    view: &'v View<'p>,
    labels: &'v Labels<'p>,
    /// The boxes, each with its own cost.
    drafts: Drafts<Cost>,
    /// Passages; callers come before callees.
    passages: Vec<Passage>,
    /// The passage of a node below a group's box.
    known: HashMap<(u32, NodeId), u32>,
}

impl<'v, 'p> Merger<'v, 'p> {
    fn new(view: &'v View<'p>, labels: &'v Labels<'p>) -> Self {
        let drafts = Drafts::new(Cost::default());
        Self { view, labels, drafts, passages: Vec::new(), known: HashMap::new() }
    }

    fn add(&mut self, thread: ThreadId, node: NodeId, cost: Cost) {
        let group = match self.labels.of_thread(thread) {
            Some(label) => self.drafts.callee(0, label, Cost::default),
            None => 0,
        };
        let passage = self.passage(group, node);
        let Passage { at, through, .. } = &mut self.passages[passage as usize];
        *through += cost;
        self.drafts.boxes[*at as usize].content += cost;
    }

    /// Returns the passage of `node`, adding it and missing callers.
    fn passage(&mut self, group: u32, node: NodeId) -> u32 {
        let mut missing = Vec::new();
        let mut next = Some(node);
        let mut caller = None;
        while let Some(id) = next {
            caller = self.known.get(&(group, id)).copied();
            if caller.is_some() {
                break;
            }
            missing.push(id);
            next = self.view.node(id).caller;
        }
        while let Some(id) = missing.pop() {
            let frame = self.view.node(id).frame;
            let below = caller.map_or(group, |passage: u32| self.passages[passage as usize].at);
            let at = self.drafts.callee(below, self.labels.of_node(id), Cost::default);
            self.passages.push(Passage { caller, at, frame, through: Cost::default() });
            let index = self.passages.len() as u32 - 1;
            self.known.insert((group, id), index);
            caller = Some(index);
        }
        // The loop above leaves a passage: `node` was either known or missing.
        caller.unwrap_or_default()
    }

    /// Returns the line of each box with most of its cost; if equal, the first in the file.
    fn lines(&mut self) -> Vec<u32> {
        for index in (0..self.passages.len()).rev() {
            let Passage { caller, through, .. } = self.passages[index];
            if let Some(caller) = caller {
                self.passages[caller as usize].through += through;
            }
        }
        let mut seen: Vec<(u32, u32, Cost)> = Vec::new();
        for &Passage { at, frame, through, .. } in &self.passages {
            match self.labels.line_of(self.view.frame(frame), self.drafts.boxes[at as usize].label) {
                0 => {}
                line => seen.push((at, line, through)),
            }
        }
        seen.sort_unstable_by_key(|&(at, line, _)| (at, line));
        let mut best = vec![(Cost::default(), 0); self.drafts.boxes.len()];
        for of_one in seen.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (at, line, _) = of_one[0];
            let cost = of_one.iter().map(|&(_, _, cost)| cost).sum();
            if cost > best[at as usize].0 {
                best[at as usize] = (cost, line);
            }
        }
        best.into_iter().map(|(_, line)| line).collect()
    }
}
