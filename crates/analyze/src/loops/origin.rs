//! The origin of a load's address.

use crate::isa::{MachineInstruction, Operands, Operation, Register};

/// The origin of a load's address within a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressOrigin {
    /// Constant: equal in each iteration.
    Fixed,
    /// Advances by the same step in each iteration.
    Strided,
    /// Read by the load itself in an earlier iteration: pointer chasing.
    OwnLoad,
    /// Read by another load, whose own address does not depend on earlier ones: an array of indices.
    OtherLoad,
    /// Computed in another way: a hash, a random number, an argument.
    Computed,
}

/// Returns the origin of the address of the load at `path[at]`. `decoded`: the function's instructions; `operands`: those of the path.
pub(crate) fn origin(
    decoded: &[MachineInstruction],
    path: &[usize],
    operands: &[&Operands],
    at: usize,
    repeats: bool,
) -> AddressOrigin {
    let one = |at: usize| &decoded[path[at]];
    let mut slice = Slice { own: false, other: false, computed: false, strided: false };
    let mut met: Vec<(Register, usize)> = Vec::new();
    let mut open: Vec<(Register, usize)> =
        operands[at].address.iter().map(|&register| (register, at)).collect();
    while let Some((register, user)) = open.pop() {
        let Some(writer) = writer(operands, register, user, repeats) else {
            // In a loop no instruction changes it; without a loop it comes from outside.
            slice.computed |= !repeats;
            continue;
        };
        if met.contains(&(register, writer)) {
            // The register depends on its own previous value, with a step from a register.
            let adds =
                matches!(one(writer).operation(), Operation::Add | Operation::Subtract | Operation::Address);
            slice.strided |= adds && operands[writer].reads.contains(&register);
            slice.computed |= !adds
                && one(writer).operation() != Operation::Move
                && operands[writer].reads.contains(&register);
            continue;
        }
        met.push((register, writer));
        if one(writer).increment(register).is_some() {
            slice.strided = true;
            continue;
        }
        let writes = operands[writer];
        if writes.loads {
            if writer == at {
                slice.own = true;
                continue;
            }
            slice.other = true;
            open.extend(writes.address.iter().map(|&part| (part, writer)));
            continue;
        }
        // After a call, or an instruction that is neither a move nor scaling, the origin is unknown.
        let is_known = one(writer).operation() != Operation::Call;
        slice.computed |= !is_known || one(writer).operation() != Operation::Move && !is_scaling(one(writer));
        if is_known {
            open.extend(writes.reads.iter().map(|&part| (part, writer)));
        }
    }
    match slice {
        Slice { own: true, .. } => AddressOrigin::OwnLoad,
        Slice { other: true, .. } => AddressOrigin::OtherLoad,
        Slice { computed: true, .. } => AddressOrigin::Computed,
        Slice { strided: true, .. } => AddressOrigin::Strided,
        Slice { .. } => AddressOrigin::Fixed,
    }
}

/// The results of the backward search from an address.
struct Slice {
    own: bool,
    other: bool,
    computed: bool,
    strided: bool,
}

/// Returns the last instruction before `user` that writes a register; in a loop the search wraps around.
fn writer(operands: &[&Operands], register: Register, user: usize, repeats: bool) -> Option<usize> {
    let writes = |&at: &usize| operands[at].writes.contains(&register);
    let before = (0..user).rev().find(writes);
    before.or_else(|| (user..operands.len()).rev().filter(|_| repeats).find(writes))
}

/// Whether a strided value stays strided: additions, and multiplication by a constant.
fn is_scaling(instruction: &MachineInstruction) -> bool {
    use Operation::{Add, Address, Multiply, Subtract};
    matches!(instruction.operation(), Add | Address | Multiply | Subtract)
}
