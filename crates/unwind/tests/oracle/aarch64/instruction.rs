//! Classifies instructions by their effect on the shadow stack, with as little decoding as that needs (Arm Architecture
//! Reference Manual, C4.1).

/// Kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Leaves a return address in the link register.
    Call,
    /// Goes to an address in a register: a return, a tail call, a jump table.
    Jump,
    /// Enters the kernel.
    Syscall,
    /// Loads a word that a later store is to replace only if nobody has written it.
    Exclusive,
    /// Anything else.
    Other,
}

/// Returns the kind of the instruction at the start of `code`.
pub fn kind(code: &[u8]) -> Kind {
    let Some(bytes) = code.first_chunk() else { return Kind::Other };
    let word = u32::from_le_bytes(*bytes);
    match word {
        _ if word & 0xfc00_0000 == 0x9400_0000 => Kind::Call,
        // With and without pointer authentication: br, blr, ret.
        _ if word & 0xfe00_0000 == 0xd600_0000 => match word >> 21 & 0xf {
            1 | 9 => Kind::Call,
            0 | 2 | 8 => Kind::Jump,
            _ => Kind::Other,
        },
        _ if word & 0xffe0_001f == 0xd400_0001 => Kind::Syscall,
        _ if exclusive(word) == Some(Exclusive::Load) => Kind::Exclusive,
        _ => Kind::Other,
    }
}

/// Returns the register that an instruction jumps through.
pub fn jumps_through(word: u32) -> Option<u16> {
    (kind(&word.to_le_bytes()) == Kind::Jump).then_some((word >> 5 & 31) as u16)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusive {
    Load,
    Store,
}

/// Returns whether an instruction is one of the exclusive loads and stores.
pub fn exclusive(word: u32) -> Option<Exclusive> {
    // Compare-and-swap of a pair shares the encoding with exclusive pairs of other sizes.
    let is_pair = word >> 21 & 1 != 0;
    let swaps = is_pair && word >> 31 == 0;
    match word & 0x3fc0_0000 {
        0x0840_0000 if !swaps => Some(Exclusive::Load),
        0x0800_0000 if !swaps => Some(Exclusive::Store),
        _ => None,
    }
}

/// Returns the target of a branch that is not a call: b, b.cond, cbz, cbnz, tbz, tbnz.
pub fn branch(word: u32, pc: u64) -> Option<u64> {
    // The field of `bits` bits at bit `at` counts instructions.
    let relative = |at: u32, bits: u32| {
        let field = i64::from(word >> at) << (64 - bits) >> (64 - bits);
        Some(pc.wrapping_add_signed(4 * field))
    };
    match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => relative(0, 26),
        _ if word & 0xff00_0000 == 0x5400_0000 => relative(5, 19),
        _ if word & 0x7e00_0000 == 0x3400_0000 => relative(5, 19),
        _ if word & 0x7e00_0000 == 0x3600_0000 => relative(5, 14),
        _ => None,
    }
}
