//! The registers of one frame, each known or not.

use super::{COUNT, RBP, RIP, RSP};

/// Integer registers by DWARF number (0..=15, 16 = `rip`). A register without a known value reads as `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    values: [u64; COUNT as usize],
    valid: u32,
}

impl Registers {
    /// Only the program counter and the stack pointer are known.
    pub fn new(ip: u64, sp: u64) -> Self {
        let mut registers = Registers { values: [0; COUNT as usize], valid: 0 };
        registers.set(RIP, ip);
        registers.set(RSP, sp);
        registers
    }

    /// Makes `value` the known value of `register`. A register that is not tracked is ignored.
    #[inline]
    pub fn set(&mut self, register: u16, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register)) {
            *slot = value;
            self.valid |= 1 << register;
        }
    }

    /// Makes the value of `register` unknown.
    pub fn forget(&mut self, register: u16) {
        if register < COUNT {
            self.valid &= !(1 << register);
        }
    }

    /// Makes all but `rip`, `rsp` and `rbp` unknown.
    #[inline]
    pub(crate) fn forget_others(&mut self) {
        self.valid &= 1 << RIP | 1 << RSP | 1 << RBP;
    }

    /// The value of `register`, if it is known.
    #[inline]
    pub fn get(&self, register: u16) -> Option<u64> {
        let value = *self.values.get(usize::from(register))?;
        (self.valid & (1 << register) != 0).then_some(value)
    }

    /// The program counter, 0 if unknown.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.get(RIP).unwrap_or(0)
    }

    /// The stack pointer, 0 if unknown.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.get(RSP).unwrap_or(0)
    }
}
