//! The compact rule: eight bytes with the location of the CFA, the return address and the saved frame pointer.
//!
//! Nearly all rows of real files fit: the CFA is an offset from the stack or the frame pointer, the return address is
//! at or below it or in the link register, and the frame pointer is unchanged or saved below the CFA. Everything else
//! in a row (on x86_64 about `rbx` and `r12`..`r15`) is omitted, so these registers are unknown after such a rule. A
//! walk that turns out to need them starts again with full rows. All other rows are odd: their rule is an index into
//! a table stored with the cache.

use crate::architecture::Architecture;
use crate::row::{CfaRule, RegisterRule, Row};
use crate::x86_64::X86_64;

/// Compact rule for the caller of a frame: one line of a rule table. The bytes are the same in memory and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Rule {
    /// Base of the CFA, or the reason why there is none.
    pub kind: Kind,
    /// Location of the return address, in words of the architecture from the CFA; 0 if it is still in its register;
    /// [`Rule::IN_RECORD`] if it is too far for this and one word above the saved frame pointer. Always -1 on x86_64,
    /// where the call pushes it.
    pub ra: i8,
    /// Location of the caller's frame pointer, in words from the CFA; 0 if it is unchanged.
    pub fp: i16,
    /// Offset from the base to the CFA, in bytes; for [`Kind::Odd`] an index.
    pub value: i32,
}

/// Base of the CFA, or the reason why there is none. New kinds must be added at the end: the numbers are in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// Stack pointer plus the value.
    Sp = 0,
    /// Frame pointer plus the value.
    Fp = 1,
    /// A full row that has no compact form; the value is its index in a table that its owner keeps.
    Odd = 2,
    /// The frame has no caller.
    Root = 3,
    /// The file has no call-frame information.
    Missing = 4,
    /// The file has call-frame information, but not for this code.
    MissingHere = 5,
    /// Damaged call-frame information.
    Bad = 6,
    /// A full row that is not stored, and must be decoded each time.
    Full = 7,
}

impl Rule {
    /// Value of [`Rule::ra`]: the return address is in a frame record (AAPCS64 §6.4.6), whose place `fp` says.
    /// Compilers put it at the lower end of the frame, which may be large.
    pub const IN_RECORD: i8 = i8::MIN;

    /// Returns the location of the return address in words from the CFA; 0 if it is still in its register.
    #[inline(always)]
    pub fn return_address(self) -> i64 {
        if self.ra == Rule::IN_RECORD { i64::from(self.fp) + 1 } else { self.ra.into() }
    }

    /// Creates a rule that consists only of its kind.
    pub const fn only(kind: Kind) -> Rule {
        Rule { kind, ra: -1, fp: 0, value: 0 }
    }

    /// Creates the rule for the odd row at `index`.
    pub(crate) fn odd(index: u32) -> Option<Rule> {
        Some(Rule { value: i32::try_from(index).ok()?, ..Rule::only(Kind::Odd) })
    }

    /// Converts a row to a compact rule for x86_64; `None` if it is odd.
    pub fn compact(row: &Row) -> Option<Rule> {
        Rule::compact_for::<X86_64>(row)
    }

    /// Converts a row to a compact rule; `None` if it is odd.
    pub fn compact_for<A: Architecture>(row: &Row) -> Option<Rule> {
        let ra = row.register(A::PC);
        if ra == RegisterRule::Undefined {
            return Some(Rule::only(Kind::Root));
        }
        let CfaRule::Register { register, offset } = row.cfa else { return None };
        if A::lands(row) || A::LR.is_some() && A::may_land(row) {
            return None;
        }
        let kind = match register {
            _ if register == A::SP => Kind::Sp,
            _ if register == A::FP => Kind::Fp,
            _ => return None,
        };
        let value = i32::try_from(offset).ok()?;
        let word = A::WORD as i64;
        let ra = match ra {
            // If calls push the return address, it is on top of the caller's frame.
            RegisterRule::Offset(offset) if A::LR.is_none() && offset != -word => return None,
            RegisterRule::Offset(offset) if offset % word == 0 && offset < 0 => {
                let ra = i8::try_from(offset / word).ok().filter(|&ra| ra != Rule::IN_RECORD);
                let is_in_record = row.register(A::FP) == RegisterRule::Offset(offset - word);
                ra.or(is_in_record.then_some(Rule::IN_RECORD))?
            }
            RegisterRule::Unspecified | RegisterRule::SameValue if A::LR.is_some() => 0,
            _ => return None,
        };
        // With a smaller value, the CFA would not be in the caller's part of the stack.
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
