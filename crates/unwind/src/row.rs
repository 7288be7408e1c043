//! A full row of call-frame information: the rules for a range of addresses.
//!
//! Expressions stay in their section and are referenced by offset, so a row is plain data.

use core::ops::Range;

use crate::address::Svma;
use crate::architecture::Architecture;
use crate::cfi::SectionKind;
use crate::isa::COLUMNS;

/// The rules for a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Section that the row comes from.
    pub section: SectionKind,
    /// Stated addresses to which the row applies, end exclusive.
    pub range: Range<Svma>,
    /// Rule for the canonical frame address.
    pub cfa: CfaRule,
    /// Rules for the caller's registers, by DWARF number. The program counter's rule is that of the return address,
    /// whatever column the file uses for it.
    pub registers: [RegisterRule; COLUMNS],
    /// Whether the code is a signal trampoline, whose caller was interrupted and did not call.
    pub is_signal: bool,
}

/// Rule for the canonical frame address (CFA), by convention the stack pointer before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfaRule {
    /// No rule.
    Undefined,
    /// A register's value plus an offset.
    Register {
        /// DWARF number.
        register: u16,
        /// Offset in bytes.
        offset: i64,
    },
    /// The value of an expression.
    Expression(Expression),
}

/// Rule for the value of a register in the caller (DWARF 5 §6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterRule {
    /// No rule: the ABI decides.
    Unspecified,
    /// The value is lost. If it is the return address, the frame has no caller.
    Undefined,
    /// The value is unchanged.
    SameValue,
    /// Saved at this offset from the CFA.
    Offset(i64),
    /// The CFA plus this offset.
    ValOffset(i64),
    /// The value of this other register.
    Register(u16),
    /// Saved at the address that the expression yields.
    Expression(Expression),
    /// The value of the expression.
    ValExpression(Expression),
}

/// Location of a DWARF expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Offset in the section, or in the text stored with the row.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Expression {
    /// Returns the expression's bytes within `text`; empty if they are out of range.
    pub(crate) fn bytes(self, text: &[u8]) -> &[u8] {
        let end = self.offset.saturating_add(self.length);
        text.get(self.offset..end).unwrap_or_default()
    }
}

impl Row {
    /// Creates a row without rules.
    pub(crate) fn empty(section: SectionKind, is_signal: bool) -> Row {
        Row {
            section,
            range: Svma(0)..Svma(0),
            cfa: CfaRule::Undefined,
            registers: [RegisterRule::Unspecified; COLUMNS],
            is_signal,
        }
    }

    /// Returns whether the function has not made a frame: the stack pointer is the CFA, and the return address is where the call left it.
    pub(crate) fn is_bare<A: Architecture>(&self) -> bool {
        let is_unmoved = self.is_on(A::SP) && matches!(self.cfa, CfaRule::Register { offset: 0, .. });
        is_unmoved && matches!(self.register(A::PC), RegisterRule::Unspecified | RegisterRule::SameValue)
    }

    /// Returns whether the CFA is in a register other than the stack and the frame pointer, as in assembly that replaces all registers.
    pub(crate) fn is_elsewhere<A: Architecture>(&self) -> bool {
        let has_base = matches!(self.cfa, CfaRule::Register { .. });
        has_base && !self.is_on(A::SP) && !self.is_on(A::FP) && !self.is_signal
    }

    /// Returns whether the CFA is an offset from register `base`.
    pub(crate) fn is_on(&self, base: u16) -> bool {
        matches!(self.cfa, CfaRule::Register { register, .. } if register == base)
    }

    /// Returns the rule of a register; registers that are not tracked have none.
    pub fn register(&self, register: u16) -> RegisterRule {
        self.registers.get(usize::from(register)).copied().unwrap_or(RegisterRule::Unspecified)
    }
}
