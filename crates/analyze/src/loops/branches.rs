//! Loops much slower than their instructions allow, where mispredicted branches are the only explanation left.
//!
//! The duration of an iteration is known if a load walks through memory in equal steps, slowly enough for two samples to fall into one pass:
//! the addresses give the iterations between them. The other explanations are ruled out first: loads that miss, dependency
//! chains, divisions, calls. A branch that depends on loaded data is what remains.
//!
//! If no branch depends on loaded data and the loop does floating-point arithmetic, the processor may need microcode assists for subnormal numbers,
//! which are so near zero that they have fewer digits (IEEE 754-2008, 2.1.48). The numbers themselves are not seen: it is the explanation left, and
//! on Intel processors an assist takes longer than almost anything else. AMD's need a few cycles, too few to be told from other causes; Arm's have
//! no microcode for it.

use plumb_profile::InstructionSet;

use super::{AddressOrigin, HotLoop, LoopBounds, LoopCause, LoopFinding, Operands};
use crate::access::{Accesses, nanoseconds_per_byte, working_set};
use crate::annotate::{Annotation, InstructionKind, Listing};

/// Nanoseconds per cycle: for processors at 2.5 to 4 GHz, to within a factor of 1.3.
const CYCLE_NS: f64 = 0.3;
/// Least excess over the bound, in cycles: a misprediction costs some 20; an excess below a fourth of that proves none.
pub(crate) const LEAST_BEYOND: f64 = 5.0;
/// Least duration of an iteration, as a multiple of the bound.
pub(crate) const LEAST_TIMES: f64 = 2.5;
/// Largest excess per branch, in cycles: no misprediction costs more, so a slower loop is not understood.
const MOST_FOR_BRANCH: f64 = 30.0;
/// Largest step in bytes: one that reaches another line each time waits for memory.
const LONGEST_STEP: f64 = 32.0;
/// A loop that reads more bytes per nanosecond than this is bound by memory bandwidth.
const MOST_BYTES_PER_NS: f64 = 4.0;

/// Least duration of an iteration for an assist, as a multiple of the bound, and least excess in cycles.
pub(crate) const ASSISTED_TIMES: f64 = 4.0;
pub(crate) const LEAST_ASSIST: f64 = 60.0;
/// Largest excess per instruction, in cycles: no assist takes longer, so a slower loop is not understood.
const MOST_ASSIST: f64 = 250.0;

/// Returns the cycles per iteration of a loop of plain instructions whose loads all hit near caches, one of them strided; `None`: not known, or
/// memory itself or a division may be what it waits for.
pub(super) fn pace(
    annotation: &Annotation,
    operands: &[&Operands],
    origins: &[Option<AddressOrigin>],
    (hot, bounds): (&HotLoop, LoopBounds),
    (accesses, nearest): (&Accesses, u64),
) -> Option<f64> {
    let kind = |at: usize| annotation.listing.instructions()[hot.path[at]].class.kind;
    let all = 0..hot.path.len();
    let is_plain = |at: usize| {
        matches!(kind(at), InstructionKind::Plain | InstructionKind::Branch | InstructionKind::Jump)
    };
    if !hot.repeats || !all.clone().all(is_plain) || bounds.has_division {
        return None;
    }
    // Loads that may miss are another cause.
    let is_near = |at: usize| match origins[at] {
        None | Some(AddressOrigin::Fixed | AddressOrigin::Strided) => true,
        Some(_) => accesses
            .sites
            .get(&hot.path[at])
            .and_then(|all| working_set(all))
            .is_some_and(|set| set.bytes <= nearest && set.sparse_pages.is_none()),
    };
    if !all.clone().all(is_near) {
        return None;
    }
    let strided = all.filter(|&at| origins[at] == Some(AddressOrigin::Strided));
    let (site, step) = strided
        .filter_map(|at| {
            Some((at, step_of(&annotation.listing, operands, hot, at).filter(|&step| step > 0.0)?))
        })
        .next()?;
    let each_ns = nanoseconds_per_byte(accesses.sites.get(&hot.path[site])?)? * step;
    let is_memory = step > LONGEST_STEP || step / each_ns > MOST_BYTES_PER_NS;
    (!is_memory).then_some(each_ns / CYCLE_NS)
}

/// Returns mispredictions as the cause if nothing else explains the time.
pub(super) fn branches(
    annotation: &Annotation,
    operands: &[&Operands],
    (hot, bounds): (&HotLoop, LoopBounds),
    cycles: f64,
    decides: impl Fn(usize) -> bool,
) -> Option<LoopFinding> {
    let kind = |at: usize| annotation.listing.instructions()[hot.path[at]].class.kind;
    let all = 0..hot.path.len();
    let least = bounds.chain.max(bounds.issue);
    let most = MOST_FOR_BRANCH * all.clone().filter(|&at| kind(at) == InstructionKind::Branch).count() as f64;
    let is_slow = cycles >= LEAST_TIMES * least && (LEAST_BEYOND..=most).contains(&(cycles - least));
    let load = all.clone().find(|&at| operands[at].loads && decides(at))?;
    is_slow.then_some(LoopFinding {
        cause: LoopCause::Mispredictions { cycles, least },
        instruction: hot.path[load],
        weight: hot.weight,
        avoidable: 1.0 - least / cycles,
    })
}

/// Returns assists for subnormal numbers as the cause if nothing else explains the time.
pub(super) fn assists(
    annotation: &Annotation,
    operands: &[&Operands],
    (hot, bounds): (&HotLoop, LoopBounds),
    cycles: f64,
    decides: impl Fn(usize) -> bool,
) -> Option<LoopFinding> {
    let all = 0..hot.path.len();
    let computes: Vec<usize> = all
        .clone()
        .map(|at| hot.path[at])
        .filter(|&index| annotation.listing.decoded()[index].is_float_arithmetic())
        .collect();
    let (&first, count) = (computes.first()?, computes.len() as f64);
    if annotation.listing.set() == InstructionSet::Aarch64 {
        return None;
    }
    let least = bounds.chain.max(bounds.issue);
    let is_slow =
        cycles >= ASSISTED_TIMES * least && (LEAST_ASSIST..=MOST_ASSIST * count).contains(&(cycles - least));
    let has_condition = all.clone().any(|at| operands[at].loads && decides(at));
    (is_slow && !has_condition).then_some(LoopFinding {
        cause: LoopCause::Assists { cycles, least },
        instruction: first,
        weight: hot.weight,
        avoidable: 1.0 - least / cycles,
    })
}

/// Returns the bytes by which a strided address advances per iteration: the increments of its registers, times their scale.
pub(super) fn step_of(listing: &Listing, operands: &[&Operands], hot: &HotLoop, load: usize) -> Option<f64> {
    let decoded = listing.decoded();
    let memory = decoded[hot.path[load]].memory()?;
    let mut step = 0.0;
    let parts = [(memory.base, 1), (memory.index, memory.scale)];
    for (register, scale) in parts.into_iter().filter_map(|(register, scale)| Some((register?, scale))) {
        for at in (0..hot.path.len()).filter(|&at| operands[at].writes.contains(&register)) {
            step += decoded[hot.path[at]].increment(register)? as f64 * f64::from(scale);
        }
    }
    (step != 0.0).then_some(step)
}
