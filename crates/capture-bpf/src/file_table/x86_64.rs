//! Rows of x86_64 that have no compact rule, and whose kinds the programs know (`walk_step` in bpf/walk.h).

use plumb_unwind::{CfaRule, Module, RegisterRule, Row, go, x86_64};

use super::bytes;
use crate::wire::{DRAP, KIND_FP_WORD, KIND_PLT, KIND_SIGNAL, KIND_SP_WORD, KIND_SWITCH};

/// The rule of an odd row whose kind the programs know.
pub(super) fn known_kind<B: AsRef<[u8]>>(row: &Row, module: &Module<B>) -> Option<[u8; 8]> {
    if let RegisterRule::ValExpression(caller) = row.register(x86_64::RIP) {
        let caller = module.expression(row, caller);
        return match (row.cfa, row.register(x86_64::RBP)) {
            (CfaRule::Register { register: x86_64::RBP, offset: 16 }, RegisterRule::Offset(-16))
                if caller == go::CALLER_IF_ANY =>
            {
                Some(bytes(KIND_SWITCH, -2, 0))
            }
            (CfaRule::Register { register: x86_64::RSP, offset: 8 }, RegisterRule::SameValue)
                if caller == go::CALLER_AT_ENTRY =>
            {
                Some(bytes(KIND_SWITCH, 0, 1))
            }
            _ => None,
        };
    }
    let CfaRule::Expression(cfa) = row.cfa else { return None };
    let cfa = module.expression(row, cfa);
    let saved = |register, expected: &[u8]| match row.register(register) {
        RegisterRule::Expression(expression) => module.expression(row, expression) == expected,
        _ => false,
    };
    // glibc's __restore_rt (sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c): all registers are relative to rsp.
    const SIGNAL_CFA: &[u8] = &[0x77, 0xa0, 0x01, 0x06];
    if row.is_signal
        && cfa == SIGNAL_CFA
        && saved(x86_64::RIP, &[0x77, 0xa8, 0x01])
        && saved(x86_64::RBP, &[0x77, 0xf8, 0x00])
    {
        return Some(bytes(KIND_SIGNAL, 0, 0));
    }
    if let Some(rule) = through_word(row, cfa, &saved) {
        return Some(rule);
    }
    // Linkers write this for .plt: rsp + 8 + ((rip & 15) >= 11 ? 8 : 0); 10 where stubs begin with endbr64.
    let [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, literal @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] = *cfa else {
        return None;
    };
    let is_plain = row.register(x86_64::RIP) == RegisterRule::Offset(-8)
        && matches!(row.register(x86_64::RBP), RegisterRule::Unspecified | RegisterRule::SameValue)
        && !row.is_signal;
    is_plain.then(|| bytes(KIND_PLT, 0, u32::from(literal - 0x30)))
}

/// The rule of a row whose CFA is a word on the stack, plus an offset: `DW_OP_breg6` or `DW_OP_breg7`, `DW_OP_deref`, optionally
/// `DW_OP_plus_uconst` (DWARF 5, section 2.5).
fn through_word(row: &Row, cfa: &[u8], saved: &dyn Fn(u16, &[u8]) -> bool) -> Option<[u8; 8]> {
    let (&base, rest) = cfa.split_first()?;
    let (at, rest) = small_number(rest)?;
    let plus = match rest {
        [0x06] => 0,
        [0x06, 0x23, plus @ 0..=0x7f] => u32::from(*plus),
        _ => return None,
    };
    if row.is_signal || row.register(x86_64::RIP) != RegisterRule::Offset(-8) {
        return None;
    }
    let value = |plus: u32| u32::from(at as u16) | plus << 16;
    let fp = match row.register(x86_64::RBP) {
        RegisterRule::Unspecified | RegisterRule::SameValue => 0,
        RegisterRule::Offset(offset) if offset % 8 == 0 && offset != 0 => i16::try_from(offset / 8).ok()?,
        // In a function with an aligned stack that saves only rbp, rbp points at its own saved value.
        RegisterRule::Expression(_) if base == 0x76 && plus == 0 && saved(x86_64::RBP, &[0x76, 0x00]) => {
            return Some(bytes(KIND_FP_WORD, 0, value(DRAP)));
        }
        _ => return None,
    };
    match base {
        0x77 => Some(bytes(KIND_SP_WORD, fp, value(plus))),
        0x76 => Some(bytes(KIND_FP_WORD, fp, value(plus))),
        _ => None,
    }
}

/// A signed LEB128 number of at most two bytes, and the rest.
fn small_number(code: &[u8]) -> Option<(i16, &[u8])> {
    match *code {
        [low @ 0..=0x7f, ref rest @ ..] => Some(((i16::from(low) << 9) >> 9, rest)),
        [low, high @ 0..=0x7f, ref rest @ ..] => {
            let number = i16::from(low & 0x7f) | i16::from(high) << 7;
            Some(((number << 2) >> 2, rest))
        }
        _ => None,
    }
}
