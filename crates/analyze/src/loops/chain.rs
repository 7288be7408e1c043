//! How long a round of a loop takes at least, in cycles: as long as its chain of results that wait for each other, and as long as
//! its instructions take where many go on at a time.
//!
//! Latencies are those that processors of the last ten years have in common, roughly (Agner Fog, Instruction tables; uops.info); loads
//! are of the nearest cache. They tell a chain from none, and no more.

use std::collections::HashMap;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::origin::Operands;
use crate::annotate::{InstructionKind, Listing};

/// Instructions that end in a cycle, on processors of today.
const WIDTH: f64 = 5.0;
/// A load that finds its data in the nearest cache.
const LOAD: f64 = 4.5;
/// Rounds until what the first one waited for makes no difference, and rounds that are measured.
const WARM: usize = 4;
const MEASURED: usize = 4;

/// What a round takes at least, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoopBounds {
    /// Its longest chain.
    pub chain: f64,
    /// Its instructions.
    pub issue: f64,
    /// Of the chain what is division and square root.
    pub has_division: bool,
    /// Loads are a part of the chain: leaving out what they take makes it shorter.
    pub has_loads: bool,
}

/// The bounds of a round. `operands`: those of the path.
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

/// The cycles by which a round's last result comes later than that of the round before.
fn chain(
    listing: &Listing,
    path: &[usize],
    operands: &[&Operands],
    latency_of: &dyn Fn(usize, f64) -> f64,
) -> f64 {
    let decoded = listing.decoded();
    let steps: Vec<(&Operands, f64, Option<Slot>)> = path
        .iter()
        .zip(operands)
        .map(|(&index, &operands)| {
            let instruction = &decoded[index];
            let own = latency_of(index, latency(instruction, listing.instructions()[index].class.kind));
            (operands, own, slot(instruction))
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
            for &register in operands.writes.iter().filter(|&&register| register != Register::RSP) {
                ready.insert(register, begin + latency);
            }
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

/// A place in the frame.
type Slot = (Register, u64);

/// The place in the frame that an instruction's operand names.
fn slot(instruction: &Instruction) -> Option<Slot> {
    let has_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    let base = instruction.memory_base().full_register();
    let is_frame =
        matches!(base, Register::RSP | Register::RBP) && instruction.memory_index() == Register::None;
    (has_memory && is_frame).then(|| (base, instruction.memory_displacement64()))
}

/// Cycles from an instruction's inputs to its result.
fn latency(instruction: &Instruction, kind: InstructionKind) -> f64 {
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let has_load = instruction.op_count() > 1
        && (1..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let is_vector = instruction.op_kinds().zip(0..).any(|(kind, operand)| {
        kind == OpKind::Register && instruction.op_register(operand).is_vector_register()
    });
    let work = match kind {
        InstructionKind::Division | InstructionKind::SquareRoot => 13.0,
        InstructionKind::Lock => 18.0,
        InstructionKind::Fence => 20.0,
        InstructionKind::Gather => 12.0,
        _ if name.starts_with("cvt") || name.starts_with("vcvt") => 5.0,
        _ if name.contains("mul") || name.starts_with("vfm") || name.starts_with("vfnm") => 3.5,
        _ if is_vector
            && (name.contains("add") || name.contains("sub"))
            && !name.contains("padd")
            && !name.contains("psub") =>
        {
            3.5
        }
        _ if is_mov(instruction.mnemonic()) => 0.0,
        _ => 1.0,
    };
    if has_load { work + LOAD } else { work.max(if is_mov(instruction.mnemonic()) { 0.0 } else { 1.0 }) }
}

/// Moves between registers take no time, as registers are renamed.
fn is_mov(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Mov
            | Mnemonic::Movaps
            | Mnemonic::Movapd
            | Mnemonic::Movups
            | Mnemonic::Movupd
            | Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovups
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Movsd
            | Mnemonic::Movss
            | Mnemonic::Vmovsd
            | Mnemonic::Vmovss
    )
}
