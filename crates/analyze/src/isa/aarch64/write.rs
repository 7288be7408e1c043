//! Registers, lists of them and addresses as text.

use super::word::{Word, ZERO};

/// Returns the name of a register of which 31 is the zero register, in the instruction's width.
pub(super) fn z(word: Word, number: u8) -> String {
    of_width(word.is_64(), number)
}

/// Returns the name of a register of which 31 is the zero register.
pub(super) fn of_width(is_64: bool, number: u8) -> String {
    let letter = if is_64 { 'x' } else { 'w' };
    if number == ZERO { format!("{letter}zr") } else { format!("{letter}{number}") }
}

/// Returns the name of a register of which 31 is the stack pointer, in the instruction's width.
pub(super) fn s(word: Word, number: u8) -> String {
    match (number, word.is_64()) {
        (ZERO, true) => "sp".to_owned(),
        (ZERO, false) => "wsp".to_owned(),
        _ => z(word, number),
    }
}

/// Returns `{v0.16b, v1.16b}`.
pub(super) fn vector_list(first: u8, count: u32, arrangement: &str) -> String {
    let names: Vec<String> =
        (0..count as u8).map(|at| format!("v{}.{arrangement}", (first + at) & 31)).collect();
    short_lists(&format!("{{{}}}", names.join(", ")))
}

/// Returns `[x0]`, or with the base advanced by `bytes` or by a register.
pub(super) fn with_post_index(word: Word, is_post_indexed: bool, bytes: u32) -> String {
    let base = if word.rn() == ZERO { "sp".to_owned() } else { of_width(true, word.rn()) };
    match word.rm() {
        _ if !is_post_indexed => format!("[{base}]"),
        ZERO => format!("[{base}], #{bytes}"),
        amount => format!("[{base}], x{amount}"),
    }
}

/// Writes `{v0.8h, v1.8h, v2.8h}` as `{v0.8h-v2.8h}`, as GNU does from three registers on.
pub(super) fn short_lists(operands: &str) -> String {
    // A list that goes on from v31 to v0 is not a range.
    let number = |register: &str| register.get(1..)?.split('.').next()?.parse::<u8>().ok();
    let shortened = || {
        let (before, rest) = operands.split_once('{')?;
        let (list, after) = rest.split_once('}')?;
        let registers: Vec<&str> = list.split(", ").collect();
        match registers[..] {
            [first, _, .., last] if registers.len() > 2 && number(first) < number(last) => {
                Some(format!("{before}{{{first}-{last}}}{after}"))
            }
            _ => None,
        }
    };
    shortened().unwrap_or_else(|| operands.to_owned())
}
