//! The rows of a comparison, and the cost of each in each recording.

use std::collections::{BTreeSet, HashMap};

use super::By;
use super::functions::Functions;
use super::name::last_part;
use super::sum::{BLOCKS, Sum, grain};
use crate::frame::FrameIndex;
use crate::kernel::{Cause, Places, cause_of};
use crate::view::{NodeId, View};

/// The subject of a row. Functions are indices into [`Diff::functions`](super::Diff::functions).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A function.
    Function(u32),
    /// A line of a function: its file name without directories; 0 if lines are not known.
    Line(u32, String, u32),
    /// A stack of functions, from the outermost to the innermost.
    Path(Vec<u32>),
    /// An activity of the kernel: a system call by its name, or the cause's name.
    Cause(Cause, String),
}

/// The key by which a view's samples are summed: innermost frame, system call number, whether the idle task ran.
pub(super) type Spot = (NodeId, Option<u32>, bool);

/// Returns the cost of a view's samples per key, sorted.
pub(super) fn spots(view: &View<'_>) -> Vec<(Spot, Sum)> {
    let profile = view.profile();
    let grain = grain(profile, view.samples().next().map(|kept| kept.sample).as_ref());
    let parts = parts(view, grain);
    let mut sums: HashMap<Spot, Sum> = HashMap::new();
    for kept in view.samples() {
        let idle = profile.processes[profile.threads[kept.sample.thread].process].pid == 0;
        let sum = sums.entry((kept.node, kept.sample.syscall, idle)).or_default();
        sum.add_sample(kept.sample.weight, grain);
        if let Some(ends) = &parts {
            sum.blocks[ends.partition_point(|&end| end <= kept.sample.time_ns)] += 1;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|&(spot, _)| spot);
    for ((node, ..), sum) in &mut sums {
        if view.frame(view.node(*node).frame).inlined {
            sum.inlined = sum.weight;
        }
    }
    sums
}

/// Returns the end times of parts of a recording with equal numbers of samples; the last part is open. `None`: samples are aggregated,
/// few, or have no times.
fn parts(view: &View<'_>, grain: f64) -> Option<Vec<u64>> {
    let is_one = |weight: u64| weight as f64 <= 1.5 * grain;
    let times = view.samples().map(|kept| is_one(kept.sample.weight).then_some(kept.sample.time_ns));
    let mut times = times.collect::<Option<Vec<u64>>>().filter(|_| grain.is_finite())?;
    times.sort_unstable();
    let ends: Vec<u64> =
        (1..BLOCKS).filter_map(|part| times.get(part * times.len() / BLOCKS).copied()).collect();
    let are_apart = times.first() < ends.first() && ends.windows(2).all(|pair| pair[0] < pair[1]);
    (ends.len() == BLOCKS - 1 && are_apart).then_some(ends)
}

/// Rows being built: their subjects, and their sums in each recording.
pub(super) struct Rows {
    pub subjects: Vec<Subject>,
    /// Per recording and row.
    pub sums: Vec<Vec<Sum>>,
    numbers: HashMap<Subject, usize>,
}

impl Rows {
    /// Builds the rows of all views, the base's first. `children`: a function's cost includes its callees.
    pub fn new(
        views: &[&View<'_>],
        spots: &[Vec<(Spot, Sum)>],
        functions: &Functions,
        by: By,
        children: bool,
        name_of: impl Fn(u32) -> Option<&'static str> + Copy,
    ) -> Self {
        let mut rows = Rows { subjects: Vec::new(), sums: Vec::new(), numbers: HashMap::new() };
        for (index, (view, spots)) in views.iter().zip(spots).enumerate() {
            rows.sums.push(Vec::new());
            let of = |frame: FrameIndex| functions.of(index, frame);
            let places = (by == By::Syscall).then(|| Places::new(view));
            for &((node, number, idle), sum) in spots {
                match (by, &places) {
                    (By::Syscall, Some(places)) => {
                        let (cause, name) = cause_of(places.of(node), number, idle, name_of);
                        rows.add(Subject::Cause(cause, name), sum);
                    }
                    (By::Line, _) => rows.add(line(view, node, of), sum),
                    (By::Path, _) => rows.add(Subject::Path(path(view, node, of)), sum),
                    _ if children => {
                        let called: BTreeSet<u32> = path(view, node, of).into_iter().collect();
                        called.into_iter().for_each(|function| rows.add(Subject::Function(function), sum));
                    }
                    _ => rows.add(Subject::Function(of(view.node(node).frame)), sum),
                }
            }
        }
        let count = rows.subjects.len();
        rows.sums.iter_mut().for_each(|sums| sums.resize(count, Sum::default()));
        rows
    }

    fn add(&mut self, subject: Subject, sum: Sum) {
        let next = self.subjects.len();
        let number = match self.numbers.get(&subject) {
            Some(&number) => number,
            None => {
                self.subjects.push(subject.clone());
                self.numbers.insert(subject, next);
                next
            }
        };
        if let Some(sums) = self.sums.last_mut() {
            if sums.len() <= number {
                sums.resize(number + 1, Sum::default());
            }
            sums[number] += sum;
        }
    }
}

/// Returns the functions on the stack of `node`, outermost first.
pub(super) fn path(view: &View<'_>, node: NodeId, of: impl Fn(FrameIndex) -> u32) -> Vec<u32> {
    let nodes = std::iter::successors(Some(view.node(node)), |node| node.caller.map(|id| view.node(id)));
    let mut path: Vec<u32> = nodes.map(|node| of(node.frame)).collect();
    path.reverse();
    path
}

fn line(view: &View<'_>, node: NodeId, of: impl Fn(FrameIndex) -> u32) -> Subject {
    let index = view.node(node).frame;
    let frame = view.frame(index);
    let file = if frame.line > 0 { last_part(frame.file) } else { "" };
    Subject::Line(of(index), file.to_owned(), frame.line)
}
