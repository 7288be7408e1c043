//! The compact rule: eight bytes that say how to find the CFA, the return address and the saved frame pointer.
//!
//! Nearly all rows of real files can be said that way: the CFA is an offset from the stack or the frame pointer, the
//! return address is at or below it or in the link register, and the frame pointer is unchanged or saved below the CFA.
//! Whatever else a row says (on x86_64 about `rbx` and `r12`..`r15`) is left out, so after such a rule
//! those are not known; a walk that turns out to need them starts again with full rows.
//! All other rows are odd: their rule is an index into a table beside the cache.

use crate::architecture::Architecture;
use crate::row::{CfaRule, RegisterRule, Row};
use crate::x86_64::X86_64;

/// How to find the caller of a frame: one line of a table of rules. The bytes are the same in memory and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Rule {
    /// What the CFA is based on, or why there is none.
    pub kind: Kind,
    /// Where the return address is, in words of the architecture from the CFA; 0 if it is still in its register.
    /// Always -1 on x86_64, where the call pushes it.
    pub ra: i8,
    /// Where the caller's frame pointer is saved, in words from the CFA; 0 if it is unchanged.
    pub fp: i16,
    /// What to add to the base to get the CFA, in bytes; for [`Kind::Odd`] an index.
    pub value: i32,
}

/// What the CFA is based on, or why there is none. New kinds are only added at the end: the numbers are in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// The stack pointer plus the value.
    Sp = 0,
    /// The frame pointer plus the value.
    Fp = 1,
    /// A full row, which no compact rule can say; the value is its index in a table that its owner keeps.
    Odd = 2,
    /// There is no caller.
    Root = 3,
    /// No call-frame information.
    Missing = 4,
    /// The same, in a file that has such information for other code.
    MissingHere = 5,
    /// Damaged call-frame information.
    Bad = 6,
    /// A full row that nobody keeps: it is to be decoded each time.
    Full = 7,
}

impl Rule {
    /// A rule that is no more than its kind.
    pub const fn only(kind: Kind) -> Rule {
        Rule { kind, ra: -1, fp: 0, value: 0 }
    }

    /// The rule for the odd row at `index`.
    pub(crate) fn odd(index: u32) -> Option<Rule> {
        Some(Rule { value: i32::try_from(index).ok()?, ..Rule::only(Kind::Odd) })
    }

    /// The row as a compact rule for x86_64; `None` if it is odd.
    pub fn compact(row: &Row) -> Option<Rule> {
        Rule::compact_for::<X86_64>(row)
    }

    /// The row as a compact rule; `None` if it is odd.
    pub fn compact_for<A: Architecture>(row: &Row) -> Option<Rule> {
        let ra = row.register(A::PC);
        if ra == RegisterRule::Undefined {
            return Some(Rule::only(Kind::Root));
        }
        let CfaRule::Register { register, offset } = row.cfa else { return None };
        let kind = match register {
            _ if register == A::SP => Kind::Sp,
            _ if register == A::FP => Kind::Fp,
            _ => return None,
        };
        let value = i32::try_from(offset).ok()?;
        let word = A::WORD as i64;
        let ra = match ra {
            // Where calls push it, the return address is on top of the caller's frame.
            RegisterRule::Offset(offset) if A::LR.is_none() && offset != -word => return None,
            RegisterRule::Offset(offset) if offset % word == 0 && offset != 0 => {
                i8::try_from(offset / word).ok()?
            }
            RegisterRule::Unspecified | RegisterRule::SameValue if A::LR.is_some() => 0,
            _ => return None,
        };
        // Below that the CFA would not be in the caller's part of the stack.
        let least = if A::LR.is_none() { A::WORD as i32 } else { 0 };
        if row.is_signal || (kind == Kind::Sp && value < least) {
            return None;
        }
        if !matches!(row.register(A::SP), RegisterRule::Unspecified | RegisterRule::ValOffset(0)) {
            return None;
        }
        let fp = match row.register(A::FP) {
            RegisterRule::Unspecified | RegisterRule::SameValue => 0,
            RegisterRule::Offset(offset) if offset % word == 0 && offset != 0 => {
                i16::try_from(offset / word).ok()?
            }
            _ => return None,
        };
        Some(Rule { kind, ra, fp, value })
    }
}

const _: () = assert!(size_of::<Rule>() == 8);
