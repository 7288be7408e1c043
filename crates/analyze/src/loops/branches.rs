//! Loops that take much longer than their instructions can, where nothing is left but branches that were predicted wrongly.
//!
//! How long a round takes is known where a load goes through memory by equal steps, so slowly that two samples are in one pass: the
//! addresses tell how many rounds went by between them. What else could take the time is ruled out first: loads that miss, chains of
//! results, divisions, calls. A branch that depends on loaded data is what is left.
//!
//! Where no branch depends on loaded data and the loop computes with numbers, the processor may need help with those that are so near zero that
//! they have fewer digits (subnormal numbers, IEEE 754-2008, 2.1.48). What they are is not seen: it is what is left, and on processors of
//! Intel it takes so long that little else does. Those of AMD need a few cycles, which nobody can tell from other things.

use super::{AddressOrigin, HotLoop, LoopBounds, LoopCause, LoopFinding, Operands};
use crate::access::{Accesses, nanoseconds_per_byte, working_set};
use crate::annotate::{Annotation, InstructionKind, Listing};

/// Nanoseconds of a cycle: of processors at 2.5 to 4 GHz, to no more than a factor of 1.3.
const CYCLE_NS: f64 = 0.3;
/// A wrong prediction costs some 20 cycles: less beyond the bound than a fourth of one is no sign of them.
const LEAST_BEYOND: f64 = 5.0;
/// A round takes so many times as long as its instructions at least.
const LEAST_TIMES: f64 = 2.5;
/// No wrong prediction costs more cycles: a loop that is slower for each of its branches is not understood.
const MOST_FOR_BRANCH: f64 = 30.0;
/// A step that goes to another line each time waits for memory.
const LONGEST_STEP: f64 = 32.0;
/// Memory gives more than that for each nanosecond: a loop that takes as much is bound by it.
const MOST_BYTES_PER_NS: f64 = 4.0;

/// A round takes so many times as long as its instructions at least, and so many cycles longer.
const ASSISTED_TIMES: f64 = 4.0;
const LEAST_ASSIST: f64 = 60.0;
/// No help takes more cycles for one instruction: a loop that is slower is not understood.
const MOST_ASSIST: f64 = 250.0;

/// Cycles of a round of a loop of plain instructions, all of whose loads are near by, one of them in equal steps; `None`: not known, or memory
/// itself or a division may be what it waits for.
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

/// Wrong predictions, if nothing else can be.
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

/// Help with subnormal numbers, if nothing else can be.
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
        .filter(|&index| is_arithmetic(&annotation.listing, index))
        .collect();
    let (&first, count) = (computes.first()?, computes.len() as f64);
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

/// Whether an instruction adds or multiplies numbers with a point.
fn is_arithmetic(listing: &Listing, index: usize) -> bool {
    let name = format!("{:?}", listing.decoded()[index].mnemonic()).to_lowercase();
    let work = name.strip_prefix('v').unwrap_or(&name);
    let is_work =
        ["add", "sub", "mul", "fmadd", "fmsub", "fnmadd", "fnmsub"].iter().any(|one| work.starts_with(one));
    is_work && ["ss", "sd", "ps", "pd"].iter().any(|end| work.ends_with(end))
}

/// Bytes by which a strided address goes on in each round: what is added to its registers, as often as they are scaled.
pub(super) fn step_of(listing: &Listing, operands: &[&Operands], hot: &HotLoop, load: usize) -> Option<f64> {
    let decoded = listing.decoded();
    let instruction = &decoded[hot.path[load]];
    let mut step = 0.0;
    for (register, scale) in [
        (instruction.memory_base().full_register(), 1),
        (instruction.memory_index().full_register(), instruction.memory_index_scale()),
    ] {
        for at in (0..hot.path.len()).filter(|&at| operands[at].writes.contains(&register)) {
            step += added(&decoded[hot.path[at]], register)? * f64::from(scale);
        }
    }
    (step != 0.0).then_some(step)
}

/// The number that an instruction adds to a register; `None`: it does something else.
fn added(instruction: &iced_x86::Instruction, register: iced_x86::Register) -> Option<f64> {
    use iced_x86::Mnemonic::{Add, Dec, Inc, Lea, Sub};
    if !super::is_step(instruction, register) {
        return None;
    }
    let number = || instruction.try_immediate(1).ok().map(|number| number.cast_signed() as f64);
    match instruction.mnemonic() {
        Inc => Some(1.0),
        Dec => Some(-1.0),
        Add => number(),
        Sub => number().map(|number| -number),
        Lea => Some(instruction.memory_displacement64().cast_signed() as f64),
        _ => None,
    }
}
