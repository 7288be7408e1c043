//! Lower bounds for a loop iteration, in cycles: its longest dependency chain, and the issue of its
//! instructions in parallel.
//!
//! The latencies are roughly those that processors of the last ten years share (Agner Fog, Instruction tables; uops.info), with loads
//! from the nearest cache. They are good enough to distinguish a chain from none, and no more.

use std::collections::HashMap;

use crate::annotate::{InstructionKind, Listing};
use crate::isa::{Convention, LOAD, MachineInstruction, Operands, Register, convention};

/// Instructions retired per cycle on current processors.
const WIDTH: f64 = 5.0;
/// Iterations simulated until the start makes no difference, and iterations measured.
const WARM: usize = 4;
const MEASURED: usize = 4;

/// Lower bounds for an iteration, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoopBounds {
    /// Bound by the longest dependency chain.
    pub chain: f64,
    /// Bound by the issue of the instructions.
    pub issue: f64,
    /// The chain contains divisions or square roots.
    pub has_division: bool,
    /// The chain contains loads: it is shorter without their latency.
    pub has_loads: bool,
}

/// Returns the bounds of an iteration. `operands` are those of the path.
pub(crate) fn bounds(listing: &Listing, path: &[usize], operands: &[&Operands]) -> LoopBounds {
    let chain = |latency_of: &dyn Fn(usize, f64) -> f64| chain(listing, path, operands, latency_of);
    let whole = chain(&|_, latency| latency);
    let without = |kinds: &[InstructionKind]| {
        chain(&|index, latency| {
            if kinds.contains(&listing.instructions()[index].class.kind) { 1.0 } else { latency }
        })
    };
    let divisions = without(&[InstructionKind::Division, InstructionKind::SquareRoot]);
    let loads = chain(&|index, latency| {
        if listing.instructions()[index].class.loads { (latency - LOAD).max(0.0) } else { latency }
    });
    LoopBounds {
        chain: whole,
        issue: path.len() as f64 / WIDTH,
        has_division: divisions < 0.7 * whole,
        has_loads: loads < 0.7 * whole,
    }
}

/// Returns the cycles by which an iteration's last result is later than that of the previous one.
fn chain(
    listing: &Listing,
    path: &[usize],
    operands: &[&Operands],
    latency_of: &dyn Fn(usize, f64) -> f64,
) -> f64 {
    let decoded = listing.decoded();
    let convention = convention(listing.set());
    let steps: Vec<(&Operands, f64, Option<Slot>)> = path
        .iter()
        .zip(operands)
        .map(|(&index, &operands)| {
            let instruction = &decoded[index];
            let own = latency_of(index, instruction.latency(listing.instructions()[index].class.kind));
            (operands, own, slot(convention, instruction))
        })
        .collect();
    let mut ready: HashMap<Register, f64> = HashMap::new();
    let mut slots: HashMap<Slot, f64> = HashMap::new();
    let mut ends = Vec::new();
    for _ in 0..WARM + MEASURED {
        for (operands, latency, slot) in &steps {
            let parts = operands.reads.iter().chain(&operands.address);
            let inputs = parts.filter_map(|register| ready.get(register));
            let in_memory = slot.filter(|_| operands.loads).and_then(|slot| slots.get(&slot));
            let begin = inputs.chain(in_memory).copied().fold(0.0, f64::max);
            let advanced =
                operands.advances.map(|base| (base, ready.get(&base).copied().unwrap_or(0.0) + 1.0));
            for &register in operands.writes.iter().filter(|&&register| register != convention.stack) {
                ready.insert(register, begin + latency);
            }
            // The address is advanced beside the access.
            ready.extend(advanced.filter(|&(base, _)| base != convention.stack));
            if let Some(slot) = slot.filter(|_| operands.stores) {
                slots.insert(slot, begin + latency);
            }
        }
        ends.push(ready.values().chain(slots.values()).copied().fold(0.0, f64::max));
    }
    match ends[..] {
        [.., first, _, _, _, last] => (last - first) / MEASURED as f64,
        _ => 0.0,
    }
}

/// A stack slot.
type Slot = (Register, u64);

/// Returns the stack slot of an instruction's operand.
fn slot(convention: &Convention, instruction: &MachineInstruction) -> Option<Slot> {
    let memory = instruction.memory()?;
    let base = memory.base.filter(|&base| base == convention.stack || base == convention.frame)?;
    memory.index.is_none().then_some((base, memory.displacement))
}
