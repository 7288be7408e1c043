//! A flame chart: a flame graph in time order, in which successive samples of a thread with the same outer frames share boxes.
//!
//! Invariant: as for [`Flame`], and boxes of one thread are in the order of their first samples. A box is a run of samples, which may cover
//! several successive calls: samples cannot tell these apart. Does not handle samples without times of their own, which have no time order.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use plumb_profile::ThreadId;

use super::{Flame, FlameBox, Grouping, Labels, label};
use crate::cost::Cost;
use crate::filter::start_ns;
use crate::view::{NodeId, View, ViewSample};

/// A flame chart, by thread.
#[derive(Clone, Debug)]
pub struct FlameChart<'p> {
    /// Boxes of all threads, each thread below a box of its own.
    pub flame: Flame<'p>,
    /// Time range of each box in nanoseconds since the start: from its first sample to one past its last.
    pub times: Vec<Range<u64>>,
}

impl<'p> FlameChart<'p> {
    /// Creates the chart of a view, most expensive thread first; `None` if it has more than `most` boxes.
    pub fn new(view: &View<'p>, most: usize) -> Option<Self> {
        let labels = Labels::new(view, Grouping::Thread);
        let mut threads: HashMap<ThreadId, (Cost, Vec<ViewSample>)> = HashMap::new();
        for kept in view.samples() {
            let (cost, samples) = threads.entry(kept.sample.thread).or_default();
            *cost += Cost::of_sample(kept.sample.weight);
            samples.push(kept);
        }
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort_unstable_by_key(|(thread, (cost, _))| (Reverse(cost.weight), *thread));
        let mut runs = Runs::new(view, &labels);
        for (thread, (_, mut samples)) in threads {
            samples.sort_by_key(|kept| kept.sample.time_ns);
            runs.begin(labels.of_thread(thread).unwrap_or(label::ROOT));
            for kept in &samples {
                runs.add(kept);
                if runs.boxes.len() > most {
                    return None;
                }
            }
        }
        let Runs { mut boxes, times, .. } = runs;
        let (labels, ranks) = labels.sorted(boxes.iter().map(|one| one.label));
        boxes.iter_mut().for_each(|one| one.label = ranks[one.label as usize]);
        Some(FlameChart { flame: Flame { labels, boxes, left_out: 0 }, times })
    }
}

/// Boxes being built.
struct Runs<'v, 'p> {
    view: &'v View<'p>,
    labels: &'v Labels<'p>,
    zero: u64,
    boxes: Vec<FlameBox>,
    times: Vec<Range<u64>>,
    /// The boxes that contain the last sample, from the root.
    open: Vec<usize>,
}

impl<'v, 'p> Runs<'v, 'p> {
    fn new(view: &'v View<'p>, labels: &'v Labels<'p>) -> Self {
        let zero = start_ns(view.profile());
        let mut runs = Runs { view, labels, zero, boxes: Vec::new(), times: Vec::new(), open: Vec::new() };
        runs.push(label::ROOT, 0);
        runs
    }

    /// Starts a thread.
    fn begin(&mut self, label: u32) {
        self.open.truncate(1);
        self.push(label, 0);
    }

    fn push(&mut self, label: u32, line: u32) {
        let depth = self.open.len() as u32;
        self.open.push(self.boxes.len());
        self.boxes.push(FlameBox { depth, label, line, own: Cost::default() });
        self.times.push(0..0);
    }

    fn add(&mut self, kept: &ViewSample) {
        let mut path: Vec<NodeId> =
            std::iter::successors(Some(kept.node), |&node| self.view.node(node).caller).collect();
        path.reverse();
        // The first two boxes are the root and the thread.
        let is_same = |(at, &node): (usize, &NodeId)| {
            self.open.get(at + 2).is_some_and(|&open| self.boxes[open].label == self.labels.of_node(node))
        };
        let same = path.iter().enumerate().take_while(|&one| is_same(one)).count();
        self.open.truncate(same + 2);
        for &node in &path[same..] {
            let label = self.labels.of_node(node);
            let line = self.labels.line_of(self.view.frame(self.view.node(node).frame), label);
            self.push(label, line);
        }
        let at = kept.sample.time_ns.saturating_sub(self.zero);
        for &open in &self.open {
            let time = &mut self.times[open];
            let start = if time.is_empty() { at } else { time.start.min(at) };
            *time = start..time.end.max(at.saturating_add(1));
        }
        if let Some(&leaf) = self.open.last() {
            self.boxes[leaf].own += Cost::of_sample(kept.sample.weight);
        }
    }
}
