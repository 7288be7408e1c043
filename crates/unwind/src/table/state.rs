//! What holds at one place of a function, as one word: laid out as a [`Rule`], so that comparing and changing it is cheap.
//!
//! What rules can't say is a flag, not a value.

use crate::rule::{Kind, Rule};
use crate::x86_64::{RBP, RIP, RSP};

/// What holds for a row: byte 0 the base of the CFA and flags, byte 1 the place of the return address in words from
/// the CFA (0: not saved), bytes 2 and 3 that of the frame pointer, bytes 4 to 7 the offset of the CFA from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

/// The CFA is based on the stack pointer.
const ON_SP: u64 = 0;
/// The CFA is based on the frame pointer.
const ON_FP: u64 = 1;
/// The CFA is based on another register.
const ON_OTHER: u64 = 2;
/// The CFA is an expression or was not defined.
const NO_BASE: u64 = 3;
const BASE: u64 = 3;
/// There is no caller.
const ROOT: u64 = 1 << 2;
/// Flags for what a rule can't say of a register, and for an offset that is too large for it.
const ODD_RA: u64 = 1 << 3;
const ODD_SP: u64 = 1 << 4;
const ODD_FP: u64 = 1 << 5;
const ODD_OFFSET: u64 = 1 << 6;
/// The state was restored from before a jump, not made by the instruction before it.
const JUMPED: u64 = 1 << 7;

impl State {
    /// Before a CIE's instructions: nothing is said.
    pub(super) const NOTHING: State = State(NO_BASE);

    /// What the row says, as far as a rule can say it; what it can't is [`Kind::Odd`].
    #[inline(always)]
    pub(super) fn rule(self) -> Rule {
        let kind = match self.0 & 0xff & !JUMPED {
            ON_SP if self.offset() >= 8 => Kind::Sp,
            ON_FP => Kind::Fp,
            _ if self.0 & ROOT != 0 => return Rule::only(Kind::Root),
            _ => return Rule::only(Kind::Odd),
        };
        let ra = (self.0 >> 8) as i8;
        if ra != -1 {
            return Rule::only(Kind::Odd);
        }
        Rule { kind, ra, fp: (self.0 >> 16) as i16, value: self.offset() }
    }

    /// What is added to the base of the CFA.
    #[inline(always)]
    pub(super) fn offset(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// As it was before a push: what comes before the first row of a function.
    pub(super) fn smaller(self) -> State {
        State(self.0.wrapping_sub(8 << 32))
    }

    /// Whether it is what `other` is, however control came here.
    #[inline(always)]
    pub(super) fn says(self, other: State) -> bool {
        (self.0 ^ other.0) & !JUMPED == 0
    }

    /// The same, restored from before a jump.
    pub(super) fn after_jump(self) -> State {
        State(self.0 | JUMPED)
    }

    /// Forgets that control came here by a jump.
    #[inline(always)]
    pub(super) fn stay(&mut self) {
        self.0 &= !JUMPED;
    }

    /// Whether the CFA is based on a register.
    #[inline(always)]
    pub(super) fn has_base(self) -> bool {
        self.0 & BASE != NO_BASE
    }

    /// The CFA is an expression.
    pub(super) fn set_no_base(&mut self) {
        self.0 |= NO_BASE;
    }

    /// Whether control came here by a jump.
    #[inline(always)]
    pub(super) fn jumped(self) -> bool {
        self.0 & JUMPED != 0
    }

    /// Whether the CFA has the same base, which is a register that rules know, in both.
    #[inline(always)]
    pub(super) fn same_base(self, other: State) -> bool {
        (self.0 ^ other.0) & BASE == 0 && self.0 & BASE <= ON_FP
    }

    /// Whether the CFA is an offset from the stack pointer.
    #[inline(always)]
    pub(super) fn on_sp(self) -> bool {
        self.0 & BASE == ON_SP
    }

    #[inline(always)]
    pub(super) fn set_offset(&mut self, offset: i64) {
        let odd = if i32::try_from(offset).is_ok() { 0 } else { ODD_OFFSET };
        self.0 = self.0 & 0xffff_ffff & !ODD_OFFSET | odd | (offset as u64) << 32;
    }

    pub(super) fn set_base(&mut self, register: u16) {
        let base = match register {
            RSP => ON_SP,
            RBP => ON_FP,
            _ => ON_OTHER,
        };
        self.0 = self.0 & !BASE | base;
    }

    /// Takes what `from` says of a register.
    pub(super) fn restore(&mut self, register: u64, from: State) {
        let mask = match u16::try_from(register) {
            Ok(RBP) => 0xffff << 16 | ODD_FP,
            Ok(RSP) => ODD_SP,
            Ok(RIP) => 0xff << 8 | ROOT | ODD_RA,
            _ => 0,
        };
        self.0 = self.0 & !mask | from.0 & mask;
    }

    /// The register is saved at an offset from the CFA.
    #[inline(always)]
    pub(super) fn saved(&mut self, register: u64, offset: i64) {
        if register == u64::from(RBP) || register == u64::from(RIP) || register == u64::from(RSP) {
            self.saved_tracked(register, offset);
        }
    }

    fn saved_tracked(&mut self, register: u64, offset: i64) {
        let words = if offset % 8 == 0 { offset / 8 } else { 0 };
        self.unsaid(register);
        if register == u64::from(RSP) {
            self.0 |= ODD_SP;
        } else if register == u64::from(RBP) {
            match i16::try_from(words) {
                Ok(words) if words != 0 => self.0 |= u64::from(words as u16) << 16,
                _ => self.0 |= ODD_FP,
            }
        } else {
            match i8::try_from(words) {
                Ok(words) if words != 0 => self.0 |= u64::from(words as u8) << 8,
                _ => self.0 |= ODD_RA,
            }
        }
    }

    /// The register has a rule of another kind.
    pub(super) fn odd(&mut self, register: u64) {
        self.unsaid(register);
        self.0 |= match u16::try_from(register) {
            Ok(RBP) => ODD_FP,
            Ok(RSP) => ODD_SP,
            Ok(RIP) => ODD_RA,
            _ => 0,
        };
    }

    /// The register's value is lost; for the return address: there is no caller.
    pub(super) fn undefined(&mut self, register: u64) {
        self.odd(register);
        if register == u64::from(RIP) {
            self.0 |= ROOT;
        }
    }

    /// Nothing is said of the register.
    pub(super) fn unsaid(&mut self, register: u64) {
        self.restore(register, State(0));
    }
}
