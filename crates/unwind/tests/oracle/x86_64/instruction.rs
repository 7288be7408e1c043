//! Classifies instructions by their effect on the shadow stack, with as little decoding as that needs.

/// Kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pushes a return address.
    Call,
    /// Pops a return address.
    Return,
    /// Pops a register.
    Pop,
    /// Enters the kernel.
    Syscall,
    /// Anything else.
    Other,
}

/// Returns the kind of the instruction at the start of `code` (x86-64; Intel SDM volume 2, opcode maps).
pub fn kind(code: &[u8]) -> Kind {
    let mut rest = code;
    // Legacy prefixes: size, address, segment (3e is also notrack), lock, bnd and rep.
    while let [0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3, after @ ..] = rest
    {
        rest = after;
    }
    if let [0x40..=0x4f, after @ ..] = rest {
        rest = after;
    }
    match rest {
        [0xe8, ..] => Kind::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Kind::Call,
        [0xc2 | 0xc3, ..] => Kind::Return,
        [0x58..=0x5f, ..] => Kind::Pop,
        [0x0f, 0x05, ..] => Kind::Syscall,
        _ => Kind::Other,
    }
}
