//! A filtered profile: the samples kept, and their stacks after inlined calls became frames and hidden frames
//! were removed.
//!
//! Patterns are matched once per distinct frame and their results handed down the tree of stacks, so the work for a
//! sample is a look-up. Every kept sample has at least one visible frame.

use plumb_profile::{Id, Meta, Profile, Sample, StackId, StackNode, ThreadId};

use crate::cost::Cost;
use crate::filter::{Filter, Mode, TimeRange, start_ns};
use crate::frame::{Expander, FrameIndex, Kind, ViewFrame};
use crate::intervals::Intervals;
use crate::pattern::Pattern;
use crate::selected_meta::selected_meta;

/// A node of the tree of visible stacks. A caller's number is smaller than its callees'.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// The number, counted from 0 without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 nodes fit in memory"))
    }
}

/// A visible frame under its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewNode {
    /// The caller's node, `None` at the root.
    pub caller: Option<NodeId>,
    /// The frame.
    pub frame: FrameIndex,
}

/// A kept sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSample {
    /// The sample as recorded, except that an off-CPU period is weighted by its part in the selected time range.
    pub sample: Sample,
    /// The innermost visible frame.
    pub node: NodeId,
}

/// A profile through a filter.
#[derive(Clone)]
pub struct View<'p> {
    profile: &'p Profile,
    meta: Meta,
    frames: Vec<ViewFrame<'p>>,
    nodes: Vec<ViewNode>,
    symbols: usize,
    /// Index of the sample in the profile, its innermost visible frame, and its weight in the selected time.
    kept: Vec<(u32, NodeId, u64)>,
    recorded: Cost,
    part: Cost,
    relative: bool,
    native: bool,
}

impl<'p> View<'p> {
    /// Looks at `profile` through `filter`.
    pub fn new(profile: &'p Profile, filter: &Filter) -> Self {
        let mut expander = Expander::new(profile);
        let visible = Visible::new(profile, filter, &mut expander);
        let mut stacks = StackTree::new(profile, filter, &visible, &mut expander);
        let mut view = View {
            profile,
            meta: selected_meta(profile, filter),
            symbols: 0,
            kept: Vec::new(),
            recorded: Cost::default(),
            part: Cost::default(),
            relative: false,
            native: filter.native,
            nodes: std::mem::take(&mut stacks.nodes),
            frames: visible.frames,
        };
        view.frames.extend(std::mem::take(&mut stacks.extra));
        view.symbols = expander.symbol_count();
        view.take_samples(filter, &stacks);
        view
    }

    fn take_samples(&mut self, filter: &Filter, stacks: &StackTree<'_>) {
        let profile = self.profile;
        let threads: Vec<(bool, bool)> = profile
            .threads
            .rows()
            .iter()
            .map(|thread| (filter.counts_thread(profile, thread), filter.keeps_thread(profile, thread)))
            .collect();
        let start = start_ns(profile);
        let wanted = wanted_marks(filter);
        let mut intervals = Intervals::new(profile);
        for (index, sample) in profile.samples.iter().enumerate() {
            let (counts, keep) = threads[sample.thread.index()];
            let weight = match filter.time {
                Some(time) => weight_in(time, start, &sample, &mut intervals),
                None => Some(sample.weight),
            };
            let weight = weight.filter(|_| !is_within(&filter.except, sample.time_ns));
            let in_event = filter.event.is_none_or(|event| event == sample.event);
            let on_cpu = filter.cpus.is_empty() || filter.cpus.contains(&sample.cpu);
            let Some(weight) = weight.filter(|_| counts && in_event && on_cpu) else { continue };
            let cost = Cost::of_sample(weight);
            self.recorded += cost;
            let marks = stacks.marks_of(sample.stack);
            if keep
                && marks & IGNORED == 0
                && marks & wanted == wanted
                && stacks.in_mode(profile, sample.stack, filter.mode)
            {
                self.part += cost;
                let index = u32::try_from(index).expect("fewer than 2^32 samples fit in memory");
                self.kept.push((index, stacks.node_of(sample.stack), weight));
            }
        }
    }

    /// Returns the underlying profile.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// Facts about what is selected. Figures of the whole recording that are unknown for a part are `None`; its start and length are those
    /// of the selected time. Losses and warnings are the recording's.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether interpreters' loops are shown, and not what they ran.
    pub(crate) fn is_native(&self) -> bool {
        self.native
    }

    /// Returns the cost that percentages refer to.
    pub fn whole(&self) -> Cost {
        if self.relative { self.part } else { self.recorded }
    }

    /// Makes percentages refer to the part that the filter keeps, not to everything recorded.
    pub fn refer_to_part(&mut self) {
        self.relative = true;
    }

    /// Removes samples, also from the whole that percentages refer to.
    pub fn set_aside(&mut self, aside: impl Fn(&ViewSample) -> bool) {
        let taken: Vec<bool> = self.samples().map(|sample| aside(&sample)).collect();
        let mut cost = Cost::default();
        let mut taken = taken.into_iter();
        self.kept.retain(|&(_, _, weight)| {
            let is_taken = taken.next().unwrap_or(false);
            if is_taken {
                cost += Cost::of_sample(weight);
            }
            !is_taken
        });
        for sum in [&mut self.recorded, &mut self.part] {
            sum.weight = sum.weight.saturating_sub(cost.weight);
            sum.samples = sum.samples.saturating_sub(cost.samples);
        }
    }

    /// Returns the cost of everything recorded for the chosen event, time and CPUs, with or without idle.
    pub fn recorded(&self) -> Cost {
        self.recorded
    }

    /// Returns the cost of the kept samples.
    pub fn part(&self) -> Cost {
        self.part
    }

    /// The kept samples in the order of their time.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = ViewSample> {
        self.kept.iter().map(|&(index, node, weight)| {
            let sample =
                self.profile.samples.get(index as usize).expect("kept samples are samples of the profile");
            ViewSample { sample: Sample { weight, ..sample }, node }
        })
    }

    /// Returns the cost of the kept samples by group of threads and distinct stack, sorted by group and node.
    pub fn costs_by(&self, group: impl Fn(ThreadId) -> u32) -> Vec<(u32, NodeId, Cost)> {
        let cost = |s: ViewSample| (group(s.sample.thread), s.node, Cost::of_sample(s.sample.weight));
        let mut costs: Vec<_> = self.samples().map(cost).collect();
        costs.sort_unstable_by_key(|&(group, node, _)| u64::from(group) << 32 | u64::from(node.0));
        costs.dedup_by(|next, first| {
            let same = (next.0, next.1) == (first.0, first.1);
            if same {
                first.2 += next.2;
            }
            same
        });
        costs
    }

    /// Returns the cost of the kept samples by thread and distinct stack, sorted by number.
    pub fn costs(&self) -> Vec<(ThreadId, NodeId, Cost)> {
        let costs = self.costs_by(|thread| thread.index() as u32);
        costs
            .into_iter()
            .map(|(thread, node, cost)| (ThreadId::from_index(thread as usize), node, cost))
            .collect()
    }

    /// The frame and its caller.
    pub fn node(&self, id: NodeId) -> ViewNode {
        self.nodes[id.index()]
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Number of distinct functions: one past the largest [`SymbolId`](crate::SymbolId).
    pub fn symbol_count(&self) -> usize {
        self.symbols
    }

    /// A visible frame.
    pub fn frame(&self, index: FrameIndex) -> &ViewFrame<'p> {
        &self.frames[index.0 as usize]
    }

    /// All visible frames.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (FrameIndex, &ViewFrame<'p>)> {
        self.frames.iter().enumerate().map(|(i, frame)| (FrameIndex(i as u32), frame))
    }

    /// The frames of a stack from the innermost to the outermost.
    pub fn stack(&self, node: NodeId) -> impl Iterator<Item = &ViewFrame<'p>> {
        std::iter::successors(Some(self.node(node)), |node| node.caller.map(|id| self.node(id)))
            .map(|node| self.frame(node.frame))
    }
}

/// A frame of the stack matches `--ignore`.
const IGNORED: u8 = 1;
/// A frame of the stack matches `--focus`.
const FOCUSED: u8 = 2;
/// A frame of the stack is in a wanted file.
const IN_DSO: u8 = 4;
/// A frame of the stack is a wanted function.
const IS_SYMBOL: u8 = 8;

/// Marks that a kept stack must have.
fn wanted_marks(filter: &Filter) -> u8 {
    let mark = |patterns: &[Pattern], mark| if patterns.is_empty() { 0 } else { mark };
    mark(&filter.focus, FOCUSED) | mark(&filter.dsos, IN_DSO) | mark(&filter.symbols, IS_SYMBOL)
}

/// The visible frames of each frame of a profile, and the marks that they give their stacks.
struct Visible<'p> {
    frames: Vec<ViewFrame<'p>>,
    /// Per frame of the profile: its part of `frames`, and its marks.
    ranges: Vec<(u32, u32, u8)>,
}

impl<'p> Visible<'p> {
    fn new(profile: &'p Profile, filter: &Filter, expander: &mut Expander<'p>) -> Self {
        let mut frames = Vec::new();
        let mut ranges = Vec::with_capacity(profile.frames.len());
        let any = |patterns: &[Pattern], name: &str| patterns.iter().any(|pattern| pattern.matches(name));
        for (id, _) in profile.frames.iter() {
            let start = frames.len();
            if !(filter.native && profile.is_script(id)) {
                expander.expand(id, filter.no_inline, &mut frames);
            }
            let mut marks = 0;
            for frame in &frames[start..] {
                let mut set = |mark, holds: bool| marks |= if holds { mark } else { 0 };
                set(IGNORED, any(&filter.ignore, &frame.name));
                set(FOCUSED, any(&filter.focus, &frame.name));
                set(
                    IN_DSO,
                    frame.kind != Kind::Marker && filter.dsos.iter().any(|p| p.matches_path(frame.dso_path)),
                );
                set(IS_SYMBOL, filter.symbols.iter().any(|p| p.matches_function(&frame.name)));
            }
            if !filter.hide.is_empty() {
                let hidden = frames.split_off(start);
                frames.extend(hidden.into_iter().filter(|frame| !any(&filter.hide, &frame.name)));
            }
            ranges.push((start as u32, frames.len() as u32, marks));
        }
        Self { frames, ranges }
    }
}

/// The profile's tree of stacks, made visible.
struct StackTree<'p> {
    nodes: Vec<ViewNode>,
    /// Frames that only the view has.
    extra: Vec<ViewFrame<'p>>,
    /// Per stack of the profile: its innermost visible node if any is visible, and its marks.
    stacks: Vec<(Option<NodeId>, u8)>,
    nothing_known: NodeId,
    all_hidden: NodeId,
}

/// Returns the caller of a node: script functions replace the interpreter's loop, unless native frames are wanted.
pub(crate) fn shown_caller(profile: &Profile, node: StackNode, native: bool) -> Option<StackId> {
    let caller = profile.stacks.node(node.caller?);
    // If no native frame was found that runs them, a marker may come next.
    let is_loop = !profile.is_script(caller.frame) && profile.frames[caller.frame].cut().is_none();
    if !native && profile.is_script(node.frame) && is_loop {
        return caller.caller;
    }
    node.caller
}

impl<'p> StackTree<'p> {
    fn new(profile: &Profile, filter: &Filter, visible: &Visible<'p>, expander: &mut Expander<'p>) -> Self {
        let extra = vec![expander.marker("[no stack recorded]"), expander.marker("[hidden]")];
        let mut nodes: Vec<ViewNode> = (0..extra.len())
            .map(|i| ViewNode { caller: None, frame: FrameIndex((visible.frames.len() + i) as u32) })
            .collect();
        let mut stacks: Vec<(Option<NodeId>, u8)> = Vec::with_capacity(profile.stacks.len());
        for (_, node) in profile.stacks.iter() {
            let caller = shown_caller(profile, *node, filter.native);
            let (mut inner, mut marks) = caller.map_or((None, 0), |caller| stacks[caller.index()]);
            let (start, end, own) = visible.ranges[node.frame.index()];
            marks |= own;
            for frame in (start..end).rev() {
                nodes.push(ViewNode { caller: inner, frame: FrameIndex(frame) });
                inner = Some(NodeId::from_index(nodes.len() - 1));
            }
            stacks.push((inner, marks));
        }
        Self { nodes, extra, stacks, nothing_known: NodeId(0), all_hidden: NodeId(1) }
    }

    fn marks_of(&self, stack: Option<StackId>) -> u8 {
        stack.map_or(0, |id| self.stacks[id.index()].1)
    }

    fn node_of(&self, stack: Option<StackId>) -> NodeId {
        stack.map_or(self.nothing_known, |id| self.stacks[id.index()].0.unwrap_or(self.all_hidden))
    }

    fn in_mode(&self, profile: &Profile, stack: Option<StackId>, mode: Option<Mode>) -> bool {
        use plumb_profile::FrameKind;
        let Some(mode) = mode else { return true };
        let kernel =
            stack.is_some_and(|id| profile.frames[profile.stacks.node(id).frame].kind == FrameKind::Kernel);
        kernel == (mode == Mode::Kernel)
    }
}

/// Returns the weight of a sample within a time range relative to `start`; `None`: it is outside.
fn weight_in(time: TimeRange, start: u64, sample: &Sample, intervals: &mut Intervals) -> Option<u64> {
    let since_start = |ns: u64| ns.saturating_sub(start);
    match intervals.begin(sample) {
        Some(begin) => Some(time.overlap(since_start(begin), sample.weight)).filter(|&weight| weight > 0),
        None => time.contains(since_start(sample.time_ns)).then_some(sample.weight),
    }
}

/// Whether a time is in one of these sorted ranges.
fn is_within(times: &[std::ops::Range<u64>], time_ns: u64) -> bool {
    let after = times.partition_point(|range| range.start <= time_ns);
    after.checked_sub(1).is_some_and(|at| times[at].contains(&time_ns))
}
