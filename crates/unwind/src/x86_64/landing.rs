//! Rows of code that leaves for the handler of an exception (`__builtin_eh_return`): libgcc's unwinder, which Rust uses too.
//!
//! The last instructions of such a function run on the handler's stack, with the handler's registers. GCC describes them by a CFA on the stack pointer or in
//! `rcx`, just above the address that they go to, but repeats the rules for the registers that it had saved.

use super::{RBP, RDX, RSP};
use crate::row::{CfaRule, RegisterRule, Row};

/// Returns whether the row is of a function that may leave for a handler. These save a register in which handlers get their data
/// (`EH_RETURN_DATA_REGNO` in GCC); no other compiled code has a rule for it.
pub(super) fn may_land(row: &Row) -> bool {
    !row.is_signal && matches!(row.register(RDX), RegisterRule::Offset(_))
}

/// Returns whether the row is of an instruction that runs on the handler's stack: it has no room for what is saved, and the frame pointer is
/// restored. A `ret` of the function keeps its rule for the frame pointer.
pub(super) fn lands(row: &Row) -> bool {
    let is_left = match row.cfa {
        CfaRule::Register { register: RBP, .. } => false,
        CfaRule::Register { register: RSP, offset } => offset <= 8,
        CfaRule::Register { .. } => true,
        _ => false,
    };
    let is_restored = matches!(row.register(RBP), RegisterRule::Unspecified | RegisterRule::SameValue);
    is_left && is_restored && may_land(row)
}
