//! Failed store forwarding: a load of data that was just stored in parts, or at an offset of a few bytes, cannot be served from the store and waits
//! until the data is in the cache.
//!
//! Detected from the code alone if store and load name the same location by registers that do not change between them (Agner Fog, Microarchitecture:
//! store forwarding; Intel's optimization manual, 3.6.4). If the registers differ, nothing is reported. Arm's processors join the halves of eight
//! bytes and more from two stores (Neoverse N1 Software Optimization Guide, store to load forwarding).

use plumb_profile::InstructionSet;

use super::{HotLoop, LoopBounds, LoopCause, LoopFinding, Operands};
use crate::annotate::{Annotation, InstructionKind};
use crate::isa::{MachineInstruction, Register};

/// Largest distance from store to load, in instructions: earlier stores have reached the cache.
const FARTHEST: usize = 60;
/// Least share of the function, in percent, of the load and the instructions that wait for it.
pub(crate) const LEAST_SHARE: f64 = 30.0;
/// Cycles that a load loses if it cannot be forwarded.
const PENALTY: f64 = 12.0;

/// A memory location as an instruction's operand names it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    registers: (Option<Register>, Option<Register>, u32),
    begin: u64,
    bytes: u64,
}

impl Place {
    fn of(instruction: &MachineInstruction) -> Option<Place> {
        let memory = instruction.memory().filter(|memory| memory.bytes > 0 && !memory.is_scattered)?;
        let registers = (memory.base, memory.index, memory.scale);
        Some(Place { registers, begin: memory.displacement, bytes: memory.bytes })
    }

    /// Whether two locations overlap.
    fn meets(&self, other: &Place) -> bool {
        let near = |one: &Place, other: &Place| other.begin.wrapping_sub(one.begin) < one.bytes;
        self.registers == other.registers && (near(self, other) || near(other, self))
    }

    /// Whether this location is one half of the other, which has eight bytes or more.
    fn is_half_of(&self, other: &Place) -> bool {
        let offset = self.begin.wrapping_sub(other.begin);
        other.bytes >= 8 && 2 * self.bytes == other.bytes && (offset == 0 || offset == self.bytes)
    }

    /// Whether this location contains the other.
    fn holds(&self, other: &Place) -> bool {
        let offset = other.begin.wrapping_sub(self.begin);
        offset < self.bytes && other.bytes <= self.bytes - offset
    }
}

/// Finds a load that no single earlier store can serve.
pub(super) fn forwarding(
    annotation: &Annotation,
    operands: &[&Operands],
    hot: &HotLoop,
    bounds: LoopBounds,
) -> Option<LoopFinding> {
    let decoded = annotation.listing.decoded();
    let places: Vec<Option<Place>> = hot.path.iter().map(|&index| Place::of(&decoded[index])).collect();
    let joins_halves = annotation.listing.set() == InstructionSet::Aarch64;
    let not_served = |at: usize| {
        let (read, written) = (places[at]?, places[last_store(annotation, operands, hot, &places, at)?]?);
        let is_served = written.holds(&read) || joins_halves && written.is_half_of(&read);
        (!is_served && weight_of(annotation, hot, at) >= LEAST_SHARE).then_some((at, read, written))
    };
    let mut loads = (0..hot.path.len()).filter(|&at| operands[at].loads && !operands[at].stores);
    let (at, read, written) = loads.find_map(not_served)?;
    Some(LoopFinding {
        cause: LoopCause::StoreForwarding { stored: written.bytes, loaded: read.bytes },
        instruction: hot.path[at],
        weight: hot.weight,
        avoidable: PENALTY / (PENALTY + bounds.chain.max(bounds.issue)),
    })
}

/// Returns the last store before a load that overlaps it; in a loop the search wraps around.
fn last_store(
    annotation: &Annotation,
    operands: &[&Operands],
    hot: &HotLoop,
    places: &[Option<Place>],
    load: usize,
) -> Option<usize> {
    let read = places[load]?;
    let (base, index, _) = read.registers;
    let count = hot.path.len();
    let steps = if hot.repeats { count - 1 } else { load };
    for step in 1..=steps.min(FARTHEST) {
        let at = (load + count - step) % count;
        if operands[at].stores && places[at].is_some_and(|place| place.meets(&read)) {
            return Some(at);
        }
        let kind = annotation.listing.instructions()[hot.path[at]].class.kind;
        let changes =
            |register: Option<Register>| register.is_some_and(|one| operands[at].writes.contains(&one));
        let is_end = matches!(
            kind,
            InstructionKind::Call
                | InstructionKind::IndirectCall
                | InstructionKind::SystemCall
                | InstructionKind::Fence
        );
        if is_end || changes(base) || changes(index) {
            return None;
        }
    }
    None
}

/// Returns the share of the load and the next two instructions in the function, in percent.
fn weight_of(annotation: &Annotation, hot: &HotLoop, load: usize) -> f64 {
    let next = (load..hot.path.len()).take(3).map(|at| annotation.rows[hot.path[at]].adjusted);
    annotation.share(next.sum())
}
