//! Skid adjustment: from the instruction where a timer's sample landed to the one that the processor was waiting for.
//!
//! An interrupted processor still finishes the oldest instruction that has not retired yet, and the sample names the one that
//! would have come next. So the time for which an instruction held up all others is found one instruction further in the control flow,
//! however many instructions retire in one cycle. Travis Downs worked this out on Skylake ("Where Do Interrupts Happen?",
//! 2019, travisdowns.github.io); `bench/skid` measures it.
//!
//! The weight of a sample is therefore moved back to the instruction that ran before: the one that had not retired when the timer
//! fired. A load, a division or a locked instruction took that time itself; an instruction of one cycle waited for its
//! operands, for its turn to retire, or for being fetched.
//!
//! - A compare with memory and the conditional jump after it are one operation for most processors, and no sample lands
//!   between them. Samples after both belong to the compare, which has the load.
//! - If an instruction has several possible predecessors, the weight is divided among them in the ratio of the samples per instruction
//!   of their blocks, which approximates how often each path was taken.
//! - Cheap instructions after a slow one are mostly done before it is, and then retire several in a cycle: samples land on one in
//!   four to eight, on Skylake and Zen alike, and on none between. Nothing waited for them, and their weight is charged to the slow
//!   instruction if it has more weight than they and so few of them have samples ([`AnnotatedRow::behind`](super::AnnotatedRow::behind) is
//!   the weight moved). A chain of cheap instructions that wait for each other has samples on each, and keeps them. The result says what
//!   held up the processor; without the slow instruction the cheap ones would still take their cycles, so the gain would be smaller.
//! - Weight stays where it landed if its predecessor is not in the function (at the first instruction, after a call), if the code
//!   does not show it (targets of indirect jumps), and at string instructions, which are interrupted before they are done.
//! - A cheap instruction that is the first after a conditional or indirect jump may have waited because the jump was mispredicted,
//!   or for its code to be fetched. Then the samples identify the block and not the instruction ([`Doubt::AfterBranch`]).
//!
//! This holds for timers (`cpu-clock`, `task-clock`) on x86, where it was measured. Hardware counters interrupt further off, by rules of their own,
//! or precisely; page faults, tracepoints and uprobes are precise. Samples of those events are not moved.
//!
//! aarch64 has the same rule for which address a sample has: that of the first instruction that was not executed, so that all before it are
//! done (Arm Architecture Reference Manual, DDI 0487, chapter D1: the preferred return address of an interrupt follows the instruction boundary at
//! which it is taken). At which boundary a processor takes it, after the oldest instruction or before it, the manual leaves to the processor. The
//! adjustment supposes the former, as on x86. No processor of Arm was measured, and the listing says so.

use super::class::{Class, Kind};
use super::flow::before;
use super::listing::Listing;

/// The reason why an instruction's adjusted weight is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// Not moved: the predecessor is in the caller.
    Entry,
    /// Not moved: a called function had just returned.
    Returned,
    /// Not moved: the code does not show the predecessor.
    NoWayHere,
    /// Not moved: a string instruction may be interrupted before it is done.
    Interruptible,
    /// Moved to a cheap instruction, the first after a conditional or indirect jump: the time may be that of a misprediction, or of fetching
    /// the code. Only the block is certain.
    AfterBranch,
}

impl Doubt {
    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Doubt::Entry => "entry",
            Doubt::Returned => "returned",
            Doubt::NoWayHere => "no-way-here",
            Doubt::Interruptible => "interruptible",
            Doubt::AfterBranch => "after-branch",
        }
    }

    /// Short description for people.
    pub fn text(self) -> &'static str {
        match self {
            Doubt::Entry => "function was entered",
            Doubt::Returned => "call had returned",
            Doubt::NoWayHere => "way here unknown",
            Doubt::Interruptible => "interruptible",
            Doubt::AfterBranch => "behind a jump: the block",
        }
    }
}

/// Number of instructions searched backwards for the slow instruction that others waited for.
const REACH: usize = 64;
/// Completed instructions retire several in a cycle: at most one in this many may have samples for the rest to count as waiting.
const TOGETHER: usize = 3;
/// Weights below this share of the slow instruction's are noise.
const NOISE: f64 = 0.02;

/// Whether the event samples by a timer.
pub(super) fn is_timer(event: &str) -> bool {
    matches!(event.split(':').next(), Some("cpu-clock" | "task-clock"))
}

/// The adjusted weight of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Adjusted {
    /// The weight.
    pub weight: f64,
    /// The part of it that landed at instructions which only waited to retire after this one.
    pub behind: f64,
    /// The reason why it is uncertain.
    pub doubt: Option<Doubt>,
}

/// Returns, for each instruction, the weight of the samples taken while the processor waited for it; where that is unknown, weight stays
/// in place and `doubt` gives the reason. The sum is that of `own`.
pub(super) fn adjust(listing: &Listing, own: &[u64]) -> Vec<Adjusted> {
    let skid = Skid { listing, own, before: before(listing), density: densities(listing, own) };
    let mut adjusted = vec![Adjusted::default(); own.len()];
    for (index, &weight) in own.iter().enumerate().filter(|(_, weight)| **weight > 0) {
        skid.charge(index, weight as f64, &mut adjusted);
    }
    for (index, adjusted) in adjusted.iter_mut().enumerate() {
        if adjusted.doubt.is_none() && adjusted.weight > 0.0 && skid.is_cheap_behind_jump(index) {
            adjusted.doubt = Some(Doubt::AfterBranch);
        }
    }
    adjusted
}

/// A function's samples and its control flow.
struct Skid<'a> {
    listing: &'a Listing,
    own: &'a [u64],
    before: Vec<Vec<usize>>,
    /// Weight per instruction, by block.
    density: Vec<f64>,
}

impl Skid<'_> {
    /// Moves the weight that landed on an instruction to the one that the processor was waiting for.
    fn charge(&self, index: usize, weight: f64, adjusted: &mut [Adjusted]) {
        if let Some(doubt) = self.stays(index) {
            adjusted[index].weight += weight;
            adjusted[index].doubt = Some(doubt);
            return;
        }
        if let Some(slow) = self.queued_behind(index) {
            adjusted[slow].weight += weight;
            adjusted[slow].behind += weight;
            return;
        }
        let from = &self.before[index];
        let ways: Vec<f64> = from.iter().map(|&from| self.way(from)).collect();
        let all: f64 = ways.iter().sum();
        for (&from, way) in from.iter().zip(&ways) {
            // If no predecessor's block has samples, all paths count the same.
            let share = if all > 0.0 { way / all } else { 1.0 / ways.len() as f64 };
            if is_call(self.class(from)) {
                adjusted[index].weight += weight * share;
                adjusted[index].doubt = Some(Doubt::Returned);
            } else {
                adjusted[self.waited_for(from)].weight += weight * share;
            }
        }
    }

    fn class(&self, index: usize) -> Class {
        self.listing.instructions()[index].class
    }

    /// Returns the relative frequency of the path through `from`.
    fn way(&self, from: usize) -> f64 {
        self.density[self.listing.instructions()[from].block]
    }

    /// Returns why all weight of an instruction stays in place, if it does.
    fn stays(&self, index: usize) -> Option<Doubt> {
        if self.class(index).kind == Kind::Repeat {
            return Some(Doubt::Interruptible);
        }
        match self.before[index][..] {
            [] if index == 0 => Some(Doubt::Entry),
            [] => Some(Doubt::NoWayHere),
            _ => None,
        }
    }

    /// Returns what the processor waited for when `last` had just retired: `last`, or the compare with memory that is fused with it.
    fn waited_for(&self, last: usize) -> usize {
        let instructions = self.listing.instructions();
        let same_block = |above: &usize| instructions[*above].block == instructions[last].block;
        let Some(above) = last.checked_sub(1).filter(same_block) else { return last };
        let is_one = self.class(last).kind == Kind::Branch
            && self.class(above).loads
            && self.listing.is_compare(above);
        if is_one { above } else { last }
    }

    /// Returns the slow instruction after which the one before `index` only waited to retire.
    fn queued_behind(&self, index: usize) -> Option<usize> {
        let mut next = index;
        let mut weights = vec![self.own[index]];
        for steps in 0..REACH {
            let at = self.likeliest_before(next)?;
            if is_call(self.class(at)) || self.class(at).kind == Kind::Repeat {
                return None;
            }
            let is_first = steps == 0;
            if is_first && (!is_cheap(self.class(at)) || self.is_cheap_behind_jump(at)) {
                return None;
            }
            let waited = self.own[next];
            if !is_first && holds(self.class(at)) && waited >= self.own[index] {
                let least = waited as f64 * NOISE;
                let landed = weights.iter().filter(|&&weight| weight as f64 > least).count();
                return (landed <= 1 + weights.len() / TOGETHER).then_some(at);
            }
            weights.push(self.own[at]);
            next = at;
        }
        None
    }

    fn likeliest_before(&self, index: usize) -> Option<usize> {
        let from = self.before[index].iter().copied();
        from.max_by(|&a, &b| self.way(a).total_cmp(&self.way(b)))
    }

    fn is_cheap_behind_jump(&self, index: usize) -> bool {
        let is_guess = |&from: &usize| matches!(self.class(from).kind, Kind::Branch | Kind::IndirectJump);
        is_cheap(self.class(index)) && self.before[index].iter().any(is_guess)
    }
}

fn is_call(class: Class) -> bool {
    matches!(class.kind, Kind::Call | Kind::IndirectCall)
}

/// Whether an instruction takes only a few cycles.
fn is_cheap(class: Class) -> bool {
    class.kind == Kind::Plain && !class.loads
}

/// Whether an instruction may take many cycles.
fn holds(class: Class) -> bool {
    let slow = [Kind::Division, Kind::SquareRoot, Kind::Lock, Kind::Gather, Kind::Fence];
    class.loads || slow.contains(&class.kind)
}

/// Returns the weight per instruction, by block.
fn densities(listing: &Listing, own: &[u64]) -> Vec<f64> {
    let instructions = listing.instructions();
    let blocks = instructions.last().map_or(0, |last| last.block + 1);
    let mut sums = vec![(0.0, 0.0); blocks];
    for (instruction, &weight) in instructions.iter().zip(own) {
        let sum = &mut sums[instruction.block];
        *sum = (sum.0 + weight as f64, sum.1 + 1.0);
    }
    sums.into_iter().map(|(weight, count)| weight / count).collect()
}
