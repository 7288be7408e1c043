//! Fields of an instruction word (Arm Architecture Reference Manual for A-profile, DDI 0487, C4.1).

/// Number that means the zero register or, in some operands, the stack pointer.
pub(super) const ZERO: u8 = 31;

/// The four bytes of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub u32);

impl Word {
    /// Returns `width` bits from bit `low` upwards.
    pub fn bits(self, low: u32, width: u32) -> u32 {
        let shifted = self.0.checked_shr(low).unwrap_or(0);
        if width >= 32 { shifted } else { shifted & ((1 << width) - 1) }
    }

    /// Returns one bit.
    pub fn bit(self, at: u32) -> bool {
        self.bits(at, 1) != 0
    }

    /// Returns such bits as a signed number.
    pub fn signed(self, low: u32, width: u32) -> i64 {
        let value = i64::from(self.bits(low, width));
        if self.bit(low + width - 1) { value - (1 << width) } else { value }
    }

    /// Whether general registers are used with all 64 bits (`sf`).
    pub fn is_64(self) -> bool {
        self.bit(31)
    }

    /// Whether a load or a store is of vector registers (`V`).
    pub fn is_vector(self) -> bool {
        self.bit(26)
    }

    /// Number of the first register (`Rd`, `Rt`).
    pub fn rd(self) -> u8 {
        self.bits(0, 5) as u8
    }

    /// Number of the second register (`Rn`), the base of an address.
    pub fn rn(self) -> u8 {
        self.bits(5, 5) as u8
    }

    /// Number of the third register (`Rm`, `Rs`).
    pub fn rm(self) -> u8 {
        self.bits(16, 5) as u8
    }

    /// Number of the register in bits 10 to 14 (`Ra`, `Rt2`).
    pub fn ra(self) -> u8 {
        self.bits(10, 5) as u8
    }
}
