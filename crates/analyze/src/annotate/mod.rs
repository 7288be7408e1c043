//! Annotates a function: the cost of each instruction, as sampled and adjusted for the skid of a timer's samples.
//!
//! This takes several steps, because this crate reads no files: [`sampled`] finds the functions that
//! a pattern matches, the caller reads the function's bytes, [`Listing::decode`] decodes the instructions, the caller looks up
//! names and source lines for their addresses, and [`Annotation::new`] assigns the samples.
//!
//! Invariant: the weights of all rows and of [`Annotation::outside`] add up to the function's own cost, exactly in the raw
//! column, up to rounding in the adjusted one.

mod class;
mod flow;
mod functions;
mod hot;
mod listing;
mod near_hot;
mod scripts;
mod skid;
mod unoptimised;

pub(crate) use class::SCALABLE;
pub use class::{Class, Kind as InstructionKind, Place as MemoryPlace};
pub use functions::{SampledFunction, sampled, sampled_files, sampled_within};
pub use hot::{HotBlock, HotLine};
pub use listing::{Instruction, Listing, MAX_CODE};
pub use scripts::sampled_scripts;
pub use skid::Doubt;

use plumb_profile::{FrameId, FrameKind, Profile, StackId};

use crate::cost::Cost;
use crate::view::View;

/// The source location of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// Name of the function; the inlined one's if the code was inlined.
    pub function: String,
    /// Source file, empty if not known.
    pub file: String,
    /// Line counted from 1, 0 if not known.
    pub line: u32,
}

/// The cost of an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotatedRow {
    /// Samples that landed on it.
    pub own: Cost,
    /// Weight after adjustment; equal to `own` if the event needs none.
    pub adjusted: f64,
    /// Part of `adjusted` that landed at completed instructions which only waited to retire after this one.
    pub behind: f64,
    /// Reason why the adjusted weight is uncertain.
    pub doubt: Option<Doubt>,
    /// Samples in its callees: functions, and the kernel for its page faults and system calls.
    pub called: Cost,
    /// Source locations, innermost inlined call first. Empty if not known.
    pub places: Vec<SourcePlace>,
}

/// An annotated function.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Instructions of the function.
    pub listing: Listing,
    /// Costs of the instructions.
    pub rows: Vec<AnnotatedRow>,
    /// Own cost of the function.
    pub own: Cost,
    /// Part of `own` outside the listing.
    pub outside: Cost,
    /// Total that shares of everything refer to.
    pub whole: Cost,
    /// Whether weights were adjusted, because the samples are a timer's.
    pub is_adjusted: bool,
}

impl Annotation {
    /// Annotates `listing`, the code of `function`, with the view's samples, which should be of one event. `places` has the source
    /// locations of each instruction, innermost inlined call first; it may be empty.
    pub fn new(
        view: &View<'_>,
        function: &SampledFunction,
        listing: Listing,
        places: Vec<Vec<SourcePlace>>,
    ) -> Annotation {
        let mut rows: Vec<AnnotatedRow> = vec![AnnotatedRow::default(); listing.instructions().len()];
        for (row, places) in rows.iter_mut().zip(places) {
            row.places = places;
        }
        let (mut own, mut outside) = (Cost::default(), Cost::default());
        for (stack, cost) in stacks(view) {
            let place = Landing::of(view.profile(), function, stack);
            let index = place.own.map(|frame| listing.index_of(view.profile().frames[frame].lookup()));
            match index {
                Some(Some(index)) => rows[index].own += cost,
                Some(None) => outside += cost,
                None => {}
            }
            if index.is_some() {
                own += cost;
            }
            let mut counted = Vec::new();
            for frame in place.callers {
                let Some(index) = call_site(&listing, view.profile(), frame) else { continue };
                // A recursive function is on the stack more than once.
                if !counted.contains(&index) {
                    counted.push(index);
                    rows[index].called += cost;
                }
            }
        }
        let is_adjusted = has_timer_only(view);
        adjust(&listing, &mut rows, is_adjusted);
        Annotation { listing, rows, own, outside, whole: view.whole(), is_adjusted }
    }

    /// Returns the share of `weight` in the function's own cost, in percent.
    pub fn share(&self, weight: f64) -> f64 {
        percent(weight, self.own)
    }

    /// Returns the share of `weight` in everything, in percent: its share in the function times the function's share.
    pub fn share_of_whole(&self, weight: f64) -> f64 {
        percent(weight, self.whole)
    }
}

fn percent(weight: f64, of: Cost) -> f64 {
    if of.weight == 0 { 0.0 } else { weight * 100.0 / of.weight as f64 }
}

fn adjust(listing: &Listing, rows: &mut [AnnotatedRow], is_adjusted: bool) {
    let own: Vec<u64> = rows.iter().map(|row| row.own.weight).collect();
    if !is_adjusted {
        rows.iter_mut().zip(&own).for_each(|(row, &weight)| row.adjusted = weight as f64);
        return;
    }
    for (row, adjusted) in rows.iter_mut().zip(skid::adjust(listing, &own)) {
        (row.adjusted, row.behind, row.doubt) = (adjusted.weight, adjusted.behind, adjusted.doubt);
    }
}

/// Whether all samples of the view were taken by a timer.
fn has_timer_only(view: &View<'_>) -> bool {
    let profile = view.profile();
    let mut events = vec![false; profile.events.len()];
    view.samples().for_each(|sample| events[plumb_profile::Id::index(sample.sample.event)] = true);
    let mut sampled = profile.events.iter().filter(|(id, _)| events[plumb_profile::Id::index(*id)]);
    sampled.all(|(_, event)| skid::is_timer(profile.strings.get(event.name)))
}

/// Returns the cost of the view's samples by stack, including hidden frames.
fn stacks(view: &View<'_>) -> Vec<(StackId, Cost)> {
    let of = |sample: plumb_profile::Sample| Some((sample.stack?, Cost::of_sample(sample.weight)));
    let mut stacks: Vec<(StackId, Cost)> = view.samples().filter_map(|kept| of(kept.sample)).collect();
    stacks.sort_unstable_by_key(|&(stack, _)| stack);
    stacks.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            first.1 += next.1;
        }
        same
    });
    stacks
}

/// The frames of a stack that are in a function.
struct Landing {
    /// The innermost frame of machine code, if it is in the function.
    own: Option<FrameId>,
    /// Outer frames in the function, which made calls.
    callers: Vec<FrameId>,
}

impl Landing {
    fn of(profile: &Profile, function: &SampledFunction, stack: StackId) -> Landing {
        let mut landing = Landing { own: None, callers: Vec::new() };
        let mut innermost = true;
        for node in profile.stacks.walk(Some(stack)) {
            let is_code = !profile.is_script(node.frame)
                && !matches!(profile.frames[node.frame].kind, FrameKind::Truncation(_));
            if !is_code {
                continue;
            }
            if function.has(profile, node.frame) {
                match innermost {
                    true => landing.own = Some(node.frame),
                    false => landing.callers.push(node.frame),
                }
            }
            innermost = false;
        }
        landing
    }
}

/// Returns the instruction that a frame called from. A page fault or an interrupt enters the kernel at the frame's instruction,
/// a system call at the one before.
fn call_site(listing: &Listing, profile: &Profile, frame: FrameId) -> Option<usize> {
    let frame = profile.frames[frame];
    let index = listing.index_of(frame.lookup())?;
    let is_call = |index: &usize| listing.instructions()[*index].class.kind == InstructionKind::SystemCall;
    let above = index.checked_sub(1).filter(|_| !frame.is_return).filter(is_call);
    Some(above.unwrap_or(index))
}
