//! Unwind state at one point of a function, as one word laid out like a [`Rule`], so that comparing and changing it
//! is cheap.
//!
//! Anything that a compact rule cannot express is a flag without a value.

use super::layout::bits;
use crate::rule::{Kind, Rule};
use crate::x86_64::{RBP, RDX, RIP, RSP};

/// State of a row. Byte 0: base of the CFA and flags. Byte 1: location of the return address in words from the CFA
/// (0: not saved). Bytes 2 and 3: location of the frame pointer. Bytes 4 to 7: offset of the CFA from its base.
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
/// The frame has no caller, if [`ODD_RA`] is set as well. Without it: the function may leave for the handler of an exception
/// ([`Architecture::may_land`](crate::Architecture::may_land)).
const ROOT: u64 = 1 << 2;
/// Flags for register rules that a compact rule cannot express, and for an offset that is too large for it.
const ODD_RA: u64 = 1 << 3;
const ODD_SP: u64 = 1 << 4;
const ODD_FP: u64 = 1 << 5;
const ODD_OFFSET: u64 = 1 << 6;
/// The state was restored from before a jump, not produced by the preceding instruction.
const JUMPED: u64 = 1 << 7;

impl State {
    /// State before a CIE's instructions: no rules.
    pub(super) const NOTHING: State = State(NO_BASE);

    /// Converts the state to the bytes of a [`Rule`]; [`Kind::Odd`] if no compact rule fits.
    #[inline(always)]
    pub(super) fn rule(self) -> u64 {
        // True if the return address is at CFA - 8, and no flag is set; either base is allowed.
        let is_usual = self.0 & (0xffff & !JUMPED & !ON_FP) == 0xff00;
        if is_usual && (self.0 & ON_FP != 0 || self.offset() >= 8) {
            return self.0 & !JUMPED;
        }
        self.unusual_rule()
    }

    /// As [`State::rule`], where the return address is not at CFA - 8, or a flag is set.
    #[cold]
    fn unusual_rule(self) -> u64 {
        match self.0 & (ROOT | ODD_RA) {
            ROOT if !self.lands() => State(self.0 & !ROOT).rule(),
            flags if flags & ODD_RA != 0 && flags & ROOT != 0 => bits(Rule::only(Kind::Root)),
            _ => bits(Rule::only(Kind::Odd)),
        }
    }

    /// Returns whether code with this state, in a function that may leave for a handler, is doing so ([`Architecture::lands`]).
    ///
    /// [`Architecture::lands`]: crate::Architecture::lands
    fn lands(self) -> bool {
        let is_left = self.0 & BASE == ON_SP && self.offset() <= 8;
        is_left && self.0 & (0xffff << 16 | ODD_FP) == 0
    }

    /// Converts the state to a rule, if one fits.
    #[inline(always)]
    pub(super) fn compact(self) -> Option<Rule> {
        let rule = self.rule();
        let kind = match rule & 0xff {
            0 => Kind::Sp,
            1 => Kind::Fp,
            kind => return (kind == Kind::Root as u64).then_some(Rule::only(Kind::Root)),
        };
        Some(Rule { kind, ra: -1, fp: (rule >> 16) as i16, value: (rule >> 32) as i32 })
    }

    /// Returns the offset of the CFA from its base.
    #[inline(always)]
    pub(super) fn offset(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// Returns the state before a push that led to this one.
    pub(super) fn popped(self) -> State {
        State(self.0.wrapping_sub(8 << 32))
    }

    /// Returns whether two states have the same rules, ignoring the jump flag.
    #[inline(always)]
    pub(super) fn says(self, other: State) -> bool {
        (self.0 ^ other.0) & !JUMPED == 0
    }

    /// Marks the state as restored from before a jump.
    pub(super) fn after_jump(self) -> State {
        State(self.0 | JUMPED)
    }

    /// Clears the jump flag.
    #[inline(always)]
    pub(super) fn settled(self) -> State {
        State(self.0 & !JUMPED)
    }

    /// Returns whether the CFA is based on a register.
    #[inline(always)]
    pub(super) fn has_base(self) -> bool {
        self.0 & BASE != NO_BASE
    }

    /// Sets the CFA to an expression.
    pub(super) fn set_no_base(&mut self) {
        self.0 |= NO_BASE;
    }

    /// Returns the change of the CFA's offset since `before`; 0 if it was not caused by a single instruction.
    #[inline(always)]
    pub(super) fn change_from(self, before: State) -> i32 {
        let differs = (self.0 ^ before.0) & BASE | self.0 & JUMPED;
        let change = self.offset().wrapping_sub(before.offset());
        if differs == 0 && self.has_base() { change } else { 0 }
    }

    /// Returns whether the frame pointer has just been set from the stack pointer.
    #[inline(always)]
    pub(super) fn is_moved_from(self, before: State) -> bool {
        self.0 & (BASE | JUMPED) == ON_FP && before.0 & BASE == ON_SP && self.offset() == before.offset()
    }

    /// Returns whether a register is tracked.
    #[inline(always)]
    pub(super) const fn tracks(register: u8) -> bool {
        (1 << RDX | 1 << RBP | 1 << RSP | 1 << RIP) >> register & 1_u64 != 0
    }

    /// Returns the state with another offset of the CFA from its base; `None` if it has no base.
    #[inline(always)]
    pub(super) fn with_offset(self, offset: i64) -> Option<State> {
        let rest = self.0 & 0xffff_ffff & !ODD_OFFSET;
        let odd = if i32::try_from(offset).is_ok() { 0 } else { ODD_OFFSET };
        self.has_base().then_some(State(rest | odd | (offset as u64) << 32))
    }

    pub(super) fn set_base(&mut self, register: u16) {
        let base = match register {
            RSP => ON_SP,
            RBP => ON_FP,
            _ => ON_OTHER,
        };
        self.0 = self.0 & !BASE | base;
    }

    /// Restores the rule of a register from another state.
    pub(super) fn restore(&mut self, register: u64, from: State) {
        let mask = match u16::try_from(register) {
            Ok(RBP) => 0xffff << 16 | ODD_FP,
            Ok(RSP) => ODD_SP,
            Ok(RIP) => 0xff << 8 | ROOT | ODD_RA,
            Ok(RDX) if self.0 & ODD_RA == 0 => ROOT,
            _ => 0,
        };
        self.0 = self.0 & !mask | from.0 & mask;
    }

    /// Sets a register's rule: saved at an offset from the CFA.
    #[inline(always)]
    pub(super) fn saved(&mut self, register: u64, offset: i64) {
        if register == u64::from(RBP) || register == u64::from(RIP) || register == u64::from(RSP) {
            self.saved_tracked(register, offset);
        } else if register == u64::from(RDX) && self.0 & ODD_RA == 0 {
            self.0 |= ROOT;
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

    /// Sets a register's rule to one that no compact rule can express.
    pub(super) fn odd(&mut self, register: u64) {
        self.unsaid(register);
        self.0 |= match u16::try_from(register) {
            Ok(RBP) => ODD_FP,
            Ok(RSP) => ODD_SP,
            Ok(RIP) => ODD_RA,
            _ => 0,
        };
    }

    /// Sets a register's rule: value lost. For the return address, that means that the frame has no caller.
    pub(super) fn undefined(&mut self, register: u64) {
        self.odd(register);
        if register == u64::from(RIP) {
            self.0 |= ROOT;
        }
    }

    /// Clears the rule of a register.
    pub(super) fn unsaid(&mut self, register: u64) {
        self.restore(register, State(0));
    }
}
