//! One function, instruction by instruction: what each cost, as the samples have it and adjusted for where a timer's samples land.
//!
//! It goes in steps, because code and names are read from files, which is not for this crate: [`sampled`] finds the functions that
//! a pattern names, whoever asks reads the function's bytes, [`Listing::decode`] makes instructions of them, whoever asks finds
//! names and source lines for their addresses, and [`Annotation::new`] puts samples beside them.
//!
//! Invariant: the weights of all rows and of what lies [`Annotation::outside`] add up to the function's own cost, in the raw
//! column exactly, in the adjusted one but for rounding.

mod class;
mod flow;
mod functions;
mod hot;
mod listing;
mod scripts;
mod skid;
mod text;
mod unoptimised;

pub use class::{Class, Kind as InstructionKind, Place as MemoryPlace};
pub use functions::{SampledFunction, sampled, sampled_files, sampled_within};
pub use hot::{HotBlock, HotLine};
pub use listing::{Instruction, Listing, MAX_CODE};
pub use scripts::sampled_scripts;
pub use skid::Doubt;

use plumb_profile::{FrameId, FrameKind, Profile, StackId};

use crate::cost::Cost;
use crate::view::View;

/// A place in source code that an instruction comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// The function; an inlined one's name where the code was inlined.
    pub function: String,
    /// Source file, empty if not known.
    pub file: String,
    /// Line counted from 1, 0 if not known.
    pub line: u32,
}

/// What an instruction cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotatedRow {
    /// Samples that landed on it.
    pub own: Cost,
    /// Weight after adjusting; equal to `own` if the event needs no adjusting.
    pub adjusted: f64,
    /// The part of that which was found at instructions that were done and only waited for their turn behind this one.
    pub behind: f64,
    /// Why the adjusted weight is to be read with care.
    pub doubt: Option<Doubt>,
    /// Samples in what was called from here: in functions, and in the kernel for its page faults and system calls.
    pub called: Cost,
    /// Where it comes from, innermost inlined call first. Empty if not known.
    pub places: Vec<SourcePlace>,
}

/// A function, annotated.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Its instructions.
    pub listing: Listing,
    /// What each of them cost.
    pub rows: Vec<AnnotatedRow>,
    /// What the function cost itself.
    pub own: Cost,
    /// What of that lies at no instruction of the listing.
    pub outside: Cost,
    /// What shares of everything refer to.
    pub whole: Cost,
    /// Whether weights were adjusted: whether the samples are a timer's.
    pub is_adjusted: bool,
}

impl Annotation {
    /// Annotates `listing`, the code of `function`, by the view's samples. They should be of one event. `places` has for each
    /// instruction where it comes from, innermost inlined call first; it may be empty.
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
                // A function that calls itself is on the stack more than once.
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

    /// Share of `weight` in what the function cost itself, in percent.
    pub fn share(&self, weight: f64) -> f64 {
        percent(weight, self.own)
    }

    /// Share of `weight` in everything, in percent: its share in the function times the function's share.
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

/// Whether all samples that are looked at were taken by a timer.
fn has_timer_only(view: &View<'_>) -> bool {
    let profile = view.profile();
    let mut events = vec![false; profile.events.len()];
    view.samples().for_each(|sample| events[plumb_profile::Id::index(sample.sample.event)] = true);
    let mut sampled = profile.events.iter().filter(|(id, _)| events[plumb_profile::Id::index(*id)]);
    sampled.all(|(_, event)| skid::is_timer(profile.strings.get(event.name)))
}

/// What the view's samples cost by their stacks, hidden frames and all.
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

/// Where a stack touches a function.
struct Landing {
    /// The innermost machine code was its own.
    own: Option<FrameId>,
    /// Its frames further out, which called.
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

/// The instruction that a frame called from. The kernel is entered at the instruction that a frame names, by a page fault or an
/// interrupt, or just before it, by a system call.
fn call_site(listing: &Listing, profile: &Profile, frame: FrameId) -> Option<usize> {
    let frame = profile.frames[frame];
    let index = listing.index_of(frame.lookup())?;
    let is_call = |index: &usize| listing.instructions()[*index].class.kind == InstructionKind::SystemCall;
    let above = index.checked_sub(1).filter(|_| !frame.is_return).filter(is_call);
    Some(above.unwrap_or(index))
}
