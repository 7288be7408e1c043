//! The registers of one frame, each known or unknown. Each architecture has its own under the name `Registers`.

use crate::architecture::Architecture;

/// General registers and program counter by DWARF number. A register without a known value reads as `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterSet<A: Architecture> {
    values: A::Values,
    valid: u64,
    /// Length of scalable vectors, in units of eight bytes; 0: unknown. No frame changes it.
    vector_granules: u16,
}

impl<A: Architecture> RegisterSet<A> {
    /// Creates a set in which only the program counter and the stack pointer are known.
    pub fn new(ip: u64, sp: u64) -> Self {
        let mut registers = Self::unknown();
        registers.set(A::PC, ip);
        registers.set(A::SP, sp);
        registers
    }

    /// Creates a set in which no register is known.
    pub fn unknown() -> Self {
        RegisterSet { values: A::ZERO, valid: 0, vector_granules: 0 }
    }

    /// Sets the value of `register`. Ignores registers that are not tracked.
    #[inline]
    pub fn set(&mut self, register: u16, value: u64) {
        if let Some(slot) = self.values.as_mut().get_mut(usize::from(register)) {
            *slot = value;
            self.valid |= 1 << register;
        } else if A::VECTOR_GRANULES == Some(register) {
            self.vector_granules = u16::try_from(value).unwrap_or(0);
        }
    }

    /// Makes the value of `register` unknown.
    pub fn forget(&mut self, register: u16) {
        if register < A::COUNT {
            self.valid &= !(1 << register);
        }
    }

    /// Makes all but the program counter, the stack pointer and the frame pointer unknown.
    #[inline]
    pub(crate) fn forget_others(&mut self) {
        self.valid &= 1 << A::PC | 1 << A::SP | 1 << A::FP;
    }

    /// Returns the value of `register`, if it is known.
    #[inline]
    pub fn get(&self, register: u16) -> Option<u64> {
        let Some(&value) = self.values.as_ref().get(usize::from(register)) else {
            let granules = Some(self.vector_granules).filter(|_| A::VECTOR_GRANULES == Some(register));
            return granules.filter(|&granules| granules != 0).map(u64::from);
        };
        (self.valid & (1 << register) != 0).then_some(value)
    }

    /// Returns the program counter, 0 if unknown.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.get(A::PC).unwrap_or(0)
    }

    /// Returns the stack pointer, 0 if unknown.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.get(A::SP).unwrap_or(0)
    }
}
