//! Decodes instructions to their effect on what a frame is made of: the stack pointer, the registers that calls preserve,
//! the link register and the flow (Arm Architecture Reference Manual, C4.1).

use super::{SP, X29, X30};

/// Effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None that matters here.
    Plain,
    /// Loads or stores on the stack.
    Access(Access),
    /// Sets the register to another plus an offset. Either may be the stack pointer.
    Add {
        /// The changed register.
        to: u16,
        /// The other.
        from: u16,
        /// Distance in bytes.
        offset: i64,
    },
    /// Copies a register.
    Move {
        /// The changed register.
        to: u16,
        /// The other.
        from: u16,
    },
    /// Changes the register, to a value that does not matter.
    Writes(u16),
    /// Loads registers from memory that is not the stack.
    Loads([Option<u16>; 2]),
    /// Calls, and goes on behind the call.
    Call,
    /// Goes elsewhere by this distance.
    Branch(i64),
    /// Goes on or elsewhere by this distance.
    MayBranch(i64),
    /// Goes to the address in the register.
    Jump(u16),
    /// Returns through the link register.
    Return,
    /// Does not go on.
    Stops,
}

/// A load or store of one or two registers relative to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether registers are loaded.
    pub loads: bool,
    /// Distance of the first word from the stack pointer.
    pub offset: i64,
    /// Amount that is added to the stack pointer.
    pub moved: i64,
    /// Eight-byte registers, at consecutive words. `None`: another kind of register.
    pub registers: [Option<u16>; 2],
}

/// Returns the effect of the instruction `word`.
pub fn effect(word: u32) -> Effect {
    match word >> 25 & 0xf {
        0b1010 | 0b1011 => flow(word),
        0b1000 | 0b1001 | 0b0101 | 0b1101 => arithmetic(word),
        low if low & 0b0101 == 0b0100 => memory(word),
        0b0000 => Effect::Stops,
        // addvl and addpl: the stack pointer moves by the length of a vector.
        0b0010 if word & 0xffa0_f01f == 0x0420_501f => Effect::Writes(SP),
        _ => Effect::Plain,
    }
}

/// Branches, exceptions and system instructions.
fn flow(word: u32) -> Effect {
    match word >> 24 {
        0x14..=0x17 => Effect::Branch(relative(word, 0, 26)),
        0x94..=0x97 => Effect::Call,
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Effect::MayBranch(relative(word, 5, 19)),
        0x36 | 0x37 | 0xb6 | 0xb7 => Effect::MayBranch(relative(word, 5, 14)),
        // svc; others stop the thread.
        0xd4 if word & 0xffe0_001f == 0xd400_0001 => Effect::Plain,
        0xd4 => Effect::Stops,
        0xd6 | 0xd7 => match word >> 21 & 0xf {
            0 | 8 => Effect::Jump((word >> 5 & 31) as u16),
            1 | 9 => Effect::Call,
            2 if matches!(word >> 5 & 31, 30 | 31) => Effect::Return,
            _ => Effect::Stops,
        },
        _ => Effect::Plain,
    }
}

/// Operations on registers.
fn arithmetic(word: u32) -> Effect {
    let (to, from) = ((word & 31) as u16, (word >> 5 & 31) as u16);
    match word {
        // add, sub with a constant.
        _ if word & 0xbf80_0000 == 0x9100_0000 => {
            let value = i64::from(word >> 10 & 0xfff) << if word >> 22 & 1 != 0 { 12 } else { 0 };
            Effect::Add { to, from, offset: if word >> 30 & 1 != 0 { -value } else { value } }
        }
        _ if word & 0xffe0_ffe0 == 0xaa00_03e0 => Effect::Move { to, from: (word >> 16 & 31) as u16 },
        // Signing and authenticating pointers.
        _ if word & 0xffff_c000 == 0xdac1_0000 => Effect::Plain,
        // Other operations that may set the stack pointer: logical ones with a constant, but tests; add and sub of registers.
        _ if to == SP && (word & 0x1f80_0000 == 0x1200_0000 && word >> 29 & 3 != 3) => Effect::Writes(SP),
        _ if to == SP && word & 0x3fe0_0000 == 0x0b20_0000 => Effect::Writes(SP),
        _ if to == SP => Effect::Plain,
        _ => Effect::Writes(to),
    }
}

/// Loads and stores.
fn memory(word: u32) -> Effect {
    let is_vector = word >> 26 & 1 != 0;
    let pair = word & 0x3a00_0000 == 0x2800_0000;
    let single = word & 0x3a00_0000 == 0x3800_0000;
    let base = (word >> 5 & 31) as u16;
    let first = (word & 31) as u16;
    let loads = if pair || is_vector { word >> 22 & 1 != 0 } else { word >> 22 & 3 != 0 };
    if base != SP || !(pair || single) {
        let literal = word & 0x3b00_0000 == 0x1800_0000;
        let exclusive = word & 0x3f00_0000 == 0x0800_0000 && word >> 22 & 1 != 0;
        let prefetches = word >> 30 == 3 && if literal { true } else { single && word >> 22 & 3 == 2 };
        let loads = !is_vector && !prefetches && (literal || exclusive || loads && (pair || single));
        return if loads { loaded(word, pair) } else { Effect::Plain };
    }
    let wide = if pair { word >> 30 == 2 } else { word >> 30 == 3 && word >> 23 & 1 == 0 };
    let register = |number: u16| Some(number).filter(|&number| wide && !is_vector && number != SP);
    let (offset, moved) = if pair { pair_offset(word) } else { single_offset(word) };
    let second = if pair { register((word >> 10 & 31) as u16) } else { None };
    Effect::Access(Access { loads, offset, moved, registers: [register(first), second] })
}

/// Effect of a load that is not from the stack.
fn loaded(word: u32, pair: bool) -> Effect {
    let register = |at: u32| Some((word >> at & 31) as u16).filter(|&register| register <= X30);
    Effect::Loads([register(0), if pair { register(10) } else { None }])
}

/// Offset of a pair's first word, and the amount that the base moves.
fn pair_offset(word: u32) -> (i64, i64) {
    let scale = if word >> 26 & 1 != 0 { 2 + (word >> 30) } else { 2 + (word >> 31) };
    let offset = signed(word >> 15, 7) << scale;
    indexed(word >> 23 & 3, offset)
}

/// Offset of a single word, and the amount that the base moves.
fn single_offset(word: u32) -> (i64, i64) {
    let is_scaled = word >> 24 & 1 != 0;
    if is_scaled {
        return (i64::from(word >> 10 & 0xfff) << (word >> 30), 0);
    }
    let offset = signed(word >> 12, 9);
    match word >> 10 & 3 {
        // A register's offset is not known; nothing is saved that way.
        2 => (i64::MIN, 0),
        mode => indexed(mode, offset),
    }
}

/// Offset of the access and movement of the base in an addressing mode: 1 moves it after the access, 3 before.
fn indexed(mode: u32, offset: i64) -> (i64, i64) {
    match mode {
        1 => (0, offset),
        3 => (offset, offset),
        _ => (offset, 0),
    }
}

/// The distance in the `bits` bits at bit `at`, which count instructions.
fn relative(word: u32, at: u32, bits: u32) -> i64 {
    4 * signed(word >> at, bits)
}

fn signed(field: u32, bits: u32) -> i64 {
    i64::from(field) << (64 - bits) >> (64 - bits)
}

const _: () = assert!(X29 == 29 && X30 == 30 && SP == 31, "registers are numbered as in instructions");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_made_and_removed() {
        let access =
            |loads, offset, moved, registers| Effect::Access(Access { loads, offset, moved, registers });
        let all = [
            // Assembled by GNU as: stp x29, x30, [sp, #-32]!; ldp x29, x30, [sp], #32; str x19, [sp, #16]; ldr x30, [sp], #16.
            (0xa9be_7bfd, access(false, -32, -32, [Some(29), Some(30)])),
            (0xa8c2_7bfd, access(true, 0, 32, [Some(29), Some(30)])),
            (0xf900_0bf3, access(false, 16, 0, [Some(19), None])),
            (0xf841_07fe, access(true, 0, 16, [Some(30), None])),
            // stp d8, d9, [sp, #-16]!; ldr w0, [sp, #4]; ldp x0, x30, [x1]
            (0x6dbf_27e8, access(false, -16, -16, [None; 2])),
            (0xb940_07e0, access(true, 4, 0, [None; 2])),
            (0xa940_7820, Effect::Loads([Some(0), Some(30)])),
            // sub sp, sp, #0x1, lsl #12; add x29, sp, #16; mov sp, x29
            (0xd140_07ff, Effect::Add { to: SP, from: SP, offset: -0x1000 }),
            (0x9100_43fd, Effect::Add { to: X29, from: SP, offset: 16 }),
            (0x9100_03bf, Effect::Add { to: SP, from: X29, offset: 0 }),
            // paciasp; autia x30, sp; mov x30, x13; cmp x0, x1; and sp, x1, #-16
            (0xd503_233f, Effect::Plain),
            (0xdac1_13fe, Effect::Plain),
            (0xaa0d_03fe, Effect::Move { to: X30, from: 13 }),
            (0xeb01_001f, Effect::Plain),
            (0x927c_ec3f, Effect::Writes(SP)),
        ];
        for (word, expected) in all {
            assert_eq!(effect(word), expected, "{word:#x}");
        }
    }

    #[test]
    fn flow_is_followed() {
        let all = [
            // b .+8; b.eq .-8; cbz x0, .+8; tbnz w0, #3, .-4; bl .; blr x1; br x17; ret; retaa; brk #0; svc #0; udf #0
            (0x1400_0002, Effect::Branch(8)),
            (0x54ff_ffc0, Effect::MayBranch(-8)),
            (0xb400_0040, Effect::MayBranch(8)),
            (0x371f_ffe0, Effect::MayBranch(-4)),
            (0x9400_0000, Effect::Call),
            (0xd63f_0020, Effect::Call),
            (0xd61f_0220, Effect::Jump(17)),
            (0xd65f_03c0, Effect::Return),
            (0xd65f_0bff, Effect::Return),
            (0xd420_0000, Effect::Stops),
            (0xd400_0001, Effect::Plain),
            (0, Effect::Stops),
        ];
        for (word, expected) in all {
            assert_eq!(effect(word), expected, "{word:#x}");
        }
    }
}
