//! A full row of call-frame information: the rules that hold for a range of addresses.
//!
//! Expressions stay in their section and are named by position, so that a row is plain data.

use core::ops::Range;

use crate::address::Svma;
use crate::cfi::SectionKind;
use crate::isa::COLUMNS;

/// The rules for a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The section that it comes from.
    pub section: SectionKind,
    /// Stated addresses for which it holds, end exclusive.
    pub range: Range<Svma>,
    /// How to find the canonical frame address.
    pub cfa: CfaRule,
    /// How to find the caller's registers, by DWARF number. The rule of the program counter is that of the return
    /// address, whatever column the file uses for it.
    pub registers: [RegisterRule; COLUMNS],
    /// The code is a signal trampoline: the caller was interrupted there, it did not call.
    pub is_signal: bool,
}

/// How to find the canonical frame address (CFA), by convention the stack pointer before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfaRule {
    /// Nothing was said.
    Undefined,
    /// A register's value plus an offset.
    Register {
        /// DWARF number.
        register: u16,
        /// In bytes.
        offset: i64,
    },
    /// The value of an expression.
    Expression(Expression),
}

/// How to find what a register was in the caller (DWARF 5 §6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterRule {
    /// Nothing was said: the ABI decides.
    Unspecified,
    /// The value is lost. For the return address: there is no caller.
    Undefined,
    /// The value is unchanged.
    SameValue,
    /// Saved at this offset from the CFA.
    Offset(i64),
    /// It is the CFA plus this offset.
    ValOffset(i64),
    /// It is in this other register.
    Register(u16),
    /// Saved at the address that the expression yields.
    Expression(Expression),
    /// It is what the expression yields.
    ValExpression(Expression),
}

/// Where a DWARF expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Offset in the section (or in the text kept beside the row).
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Expression {
    /// Its bytes within `text`; empty if it is not there.
    pub(crate) fn bytes(self, text: &[u8]) -> &[u8] {
        let end = self.offset.saturating_add(self.length);
        text.get(self.offset..end).unwrap_or_default()
    }
}

impl Row {
    /// A row without any rule.
    pub(crate) fn empty(section: SectionKind, is_signal: bool) -> Row {
        Row {
            section,
            range: Svma(0)..Svma(0),
            cfa: CfaRule::Undefined,
            registers: [RegisterRule::Unspecified; COLUMNS],
            is_signal,
        }
    }

    /// Whether the CFA is based on a register.
    pub(crate) fn is_on(&self, base: u16) -> bool {
        matches!(self.cfa, CfaRule::Register { register, .. } if register == base)
    }

    /// The rule for a register; registers that are not tracked have none.
    pub fn register(&self, register: u16) -> RegisterRule {
        self.registers.get(usize::from(register)).copied().unwrap_or(RegisterRule::Unspecified)
    }
}
