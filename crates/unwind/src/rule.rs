//! The compact rule: eight bytes that say how to find the CFA, the return address and the saved frame pointer.
//!
//! Nearly all rows of real files can be said that way: the CFA is an offset from `rsp` or `rbp`, the return address is
//! just below it, and `rbp` is unchanged or saved below it. Whatever else a row says about `rbx` and `r12`..`r15` is
//! left out, so after such a rule those are not known; a walk that turns out to need them starts again with full rows.
//! All other rows are odd: their rule is an index into a table beside the cache.

use crate::row::{CfaRule, RegisterRule, Row};
use crate::x86_64::{RBP, RIP, RSP};

/// How to find the caller of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    reserved: u8,
    /// Where the caller's `rbp` is saved, in words of eight bytes from the CFA; 0 if it is unchanged.
    pub(crate) rbp: i16,
    /// What to add to the base to get the CFA; for an odd rule its index.
    pub(crate) value: i32,
}

/// What the CFA is based on, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// `rsp` plus the value.
    Rsp,
    /// `rbp` plus the value.
    Rbp,
    /// A full row; the value is its index.
    Odd,
    /// There is no caller.
    Root,
    /// No call-frame information.
    Missing,
    /// The same, in a file that has such information for other code.
    MissingHere,
    /// Damaged call-frame information.
    Bad,
}

impl Rule {
    /// A rule that is no more than its kind.
    pub(crate) const fn only(kind: Kind) -> Rule {
        Rule { kind, reserved: 0, rbp: 0, value: 0 }
    }

    /// The rule for the odd row at `index`.
    pub(crate) fn odd(index: u32) -> Option<Rule> {
        Some(Rule { value: i32::try_from(index).ok()?, ..Rule::only(Kind::Odd) })
    }

    /// The row as a compact rule; `None` if it is odd.
    pub(crate) fn compact(row: &Row) -> Option<Rule> {
        let ra = row.register(RIP);
        if ra == RegisterRule::Undefined {
            return Some(Rule::only(Kind::Root));
        }
        let CfaRule::Register { register, offset } = row.cfa else { return None };
        let kind = match register {
            RSP => Kind::Rsp,
            RBP => Kind::Rbp,
            _ => return None,
        };
        let value = i32::try_from(offset).ok()?;
        // Below eight the return address would not be in the caller's part of the stack.
        if row.is_signal || ra != RegisterRule::Offset(-8) || (kind == Kind::Rsp && value < 8) {
            return None;
        }
        if !matches!(row.register(RSP), RegisterRule::Unspecified | RegisterRule::ValOffset(0)) {
            return None;
        }
        let rbp = match row.register(RBP) {
            RegisterRule::Unspecified | RegisterRule::SameValue => 0,
            RegisterRule::Offset(offset) if offset % 8 == 0 && offset != 0 => {
                i16::try_from(offset / 8).ok()?
            }
            _ => return None,
        };
        Some(Rule { kind, reserved: 0, rbp, value })
    }
}

const _: () = assert!(size_of::<Rule>() == 8);
