//! Registers by DWARF number (DWARF for the Arm 64-bit Architecture, 4.1).

use disarm64::InsnOperand;

use super::word::{Word, ZERO};
use crate::isa::model::{Convention, Register};

/// The stack pointer.
pub(super) const SP: Register = Register::General(31);
/// x29.
pub(super) const FP: Register = Register::General(29);
/// sp and x29; x20 to x28 (Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1): gcc uses x19 without optimizing too.
pub(in crate::isa) const CONVENTION: Convention = Convention {
    stack: SP,
    frame: FP,
    kept: &[
        Register::General(20),
        Register::General(21),
        Register::General(22),
        Register::General(23),
        Register::General(24),
        Register::General(25),
        Register::General(26),
        Register::General(27),
        Register::General(28),
    ],
};

/// x30, the return address.
pub(super) const LINK: Register = Register::General(30);
/// p0 and v0: the first of 16 predicates and of 32 vectors. A scalable vector `z` and the scalars of `v` are the whole register.
const PREDICATES: u16 = 48;
const VECTORS: u16 = 64;

/// Returns the general register of this number; 31 is the stack pointer.
pub(super) fn general(number: u8) -> Register {
    Register::General(number & 31)
}

/// Returns the general register of this number, unless it is the zero register.
pub(super) fn unless_zero(number: u8) -> Option<Register> {
    (number & 31 != ZERO).then(|| general(number))
}

/// Returns the vector register of this number.
pub(super) fn vector(number: u8) -> Register {
    Register::Other(VECTORS + u16::from(number & 31))
}

/// Returns the predicate register of this number.
pub(super) fn predicate(number: u8) -> Register {
    Register::Other(PREDICATES + u16::from(number & 15))
}

/// Returns the number in the first field of an operand.
pub(super) fn number(word: Word, operand: &InsnOperand) -> Option<u8> {
    let field = operand.bit_fields.first()?;
    Some(word.bits(field.lsb.into(), field.width.into()) as u8)
}
