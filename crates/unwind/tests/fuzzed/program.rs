//! Generates random but valid call-frame information: functions whose rows use all instructions, with the linker's
//! table, and a stack whose words often point at code or at the stack.

use super::{STACK, Source};

/// Address of the first function. Functions are [`SIZE`] bytes apart.
pub const CODE: u64 = 0x10_0000;
pub const SIZE: u64 = 0x40;
const FRAMES: u64 = 0x20_0000;
pub const TABLE: u64 = 0x30_0000;

/// A generated program.
pub struct Program {
    pub eh_frame: Vec<u8>,
    pub eh_frame_hdr: Vec<u8>,
    pub words: Vec<u64>,
    pub functions: u64,
}

/// Architecture-specific parts of call-frame information.
pub struct Target {
    /// DWARF numbers of the registers that rules use most.
    registers: [u8; 12],
    /// Contents of a CIE from the code alignment on, with pc-relative four-byte pointers, and its instructions.
    cie: &'static [u8],
    /// Expression opcodes for the stack pointer and the frame pointer plus an offset.
    based: [u8; 2],
}

pub const X86_64: Target = Target {
    registers: [7, 6, 7, 6, 3, 12, 10, 16, 14, 15, 0, 17],
    cie: &[1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1],
    based: [0x77, 0x76],
};

pub const AARCH64: Target = Target {
    registers: [31, 29, 31, 29, 30, 19, 20, 28, 16, 30, 0, 34],
    cie: &[4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0],
    based: [0x8f, 0x8d],
};

/// Returns the stated address of `.eh_frame`.
pub fn frames_at() -> u64 {
    FRAMES
}

/// Appends a LEB128 number of one or two bytes, sometimes a large one.
fn leb(source: &mut Source<'_>, out: &mut Vec<u8>) {
    match source.below(16) {
        0 => out.extend([0xff, 0xff, 0xff, 0xff, 0x0f]),
        1..3 => out.extend([0x80 | source.byte(), 0x01]),
        _ => out.push(source.byte() & 0x3f),
    }
}

/// Appends an offset, usually a small multiple of the word size, as compilers write.
fn offset(source: &mut Source<'_>, out: &mut Vec<u8>) {
    if source.below(32) == 0 { leb(source, out) } else { out.push(8 + source.below(6) * 8) }
}

impl Target {
    fn register(&self, source: &mut Source<'_>) -> u8 {
        self.registers[usize::from(source.below(12))]
    }
}

fn expression(target: &Target, source: &mut Source<'_>, out: &mut Vec<u8>) {
    let mut code = Vec::new();
    for _ in 0..1 + source.below(5) {
        match source.below(8) {
            0 => code.extend([0x70 + (target.register(source) & 0x1f), source.byte() & 0x7f]),
            1 => code.push(0x06),
            2 => code.extend([0x23, source.byte() & 0x7f]),
            3 => code.push(0x30 + source.below(32)),
            4 => code.extend([target.based[0], 8 * source.below(8)]),
            5 => code.extend([target.based[1], 8 * source.below(8)]),
            6 => code.push(0x12 + source.below(0x1c)),
            _ => code.push(source.byte()),
        }
    }
    out.push(code.len() as u8);
    out.extend(code);
}

fn instruction(target: &Target, kinds: u8, source: &mut Source<'_>, out: &mut Vec<u8>) {
    let register = |source: &mut Source<'_>| target.register(source);
    match source.below(kinds) {
        0..4 => out.push(0x41 + source.below(12)),
        4..7 => {
            out.push(0x0e);
            offset(source, out);
        }
        7 => {
            out.extend([0x0c, register(source)]);
            offset(source, out);
        }
        8 => out.extend([0x0d, register(source)]),
        9..12 => out.extend([0x80 | register(source), 1 + source.below(8)]),
        12 => out.push(0xc0 | register(source)),
        13 => out.push(0x0a),
        14 => out.push(0x0b),
        15 => {
            out.push(0x0f);
            expression(target, source, out);
        }
        16 => {
            out.extend([[0x10, 0x16][usize::from(source.below(2))], register(source)]);
            expression(target, source, out);
        }
        17 => out.extend([[0x07, 0x08][usize::from(source.below(2))], register(source)]),
        18 => out.extend([0x09, register(source), register(source)]),
        _ => {
            out.extend([[0x14, 0x05, 0x11, 0x15][usize::from(source.below(4))], register(source)]);
            leb(source, out);
        }
    }
}

fn entry(body: &[u8], out: &mut Vec<u8>) {
    let padding = (4 - body.len() % 4) % 4;
    out.extend(((body.len() + padding) as u32).to_le_bytes());
    out.extend(body);
    out.resize(out.len() + padding, 0);
}

/// Generates an x86_64 program from arbitrary bytes.
pub fn make(source: &mut Source<'_>) -> Program {
    make_for(&X86_64, source)
}

/// Generates a program for an architecture.
pub fn make_for(target: &Target, source: &mut Source<'_>) -> Program {
    let functions = u64::from(1 + source.below(8));
    let mut eh_frame = Vec::new();
    // Two CIEs, `zR` and, for signal frames, `zRS`; pointers are pc-relative with four bytes.
    let mut cies = Vec::new();
    for augmentation in [&b"zR"[..], b"zRS"] {
        cies.push(eh_frame.len());
        let mut body = vec![0, 0, 0, 0, 1];
        body.extend(augmentation);
        body.push(0);
        body.extend(target.cie);
        entry(&body, &mut eh_frame);
    }
    let mut table = Vec::new();
    for index in 0..functions {
        let cie = cies[usize::from(source.below(6) == 0)];
        let at = eh_frame.len();
        let begin = CODE + index * SIZE;
        let mut body = ((at + 4 - cie) as u32).to_le_bytes().to_vec();
        body.extend((begin.wrapping_sub(FRAMES + at as u64 + 8) as u32).to_le_bytes());
        // Some functions leave a gap after them.
        let length = if source.below(6) == 0 { SIZE / 2 } else { SIZE };
        body.extend((length as u32).to_le_bytes());
        body.push(0);
        // Most functions use only common instructions, so that walks get further.
        let kinds = [7, 7, 20][usize::from(source.below(3))];
        for _ in 0..source.below(16) {
            instruction(target, kinds, source, &mut body);
        }
        entry(&body, &mut eh_frame);
        table.extend((begin.wrapping_sub(TABLE) as u32).to_le_bytes());
        table.extend((FRAMES + at as u64).wrapping_sub(TABLE).to_le_bytes().iter().take(4));
    }
    eh_frame.extend([0; 4]);
    let mut eh_frame_hdr = vec![1, 0x1b, 0x03, 0x3b];
    eh_frame_hdr.extend((FRAMES.wrapping_sub(TABLE + 4) as u32).to_le_bytes());
    eh_frame_hdr.extend((functions as u32).to_le_bytes());
    eh_frame_hdr.extend(table);
    let length = 16 + u64::from(source.byte());
    let words = (0..length).map(|_| word(source, functions, length)).collect();
    Program { eh_frame, eh_frame_hdr, words, functions }
}

/// Returns an address of code, of the stack, or a random word.
pub fn word(source: &mut Source<'_>, functions: u64, length: u64) -> u64 {
    match source.below(16) {
        0..10 => CODE + u64::from(source.byte()) * 3 % (functions * SIZE + 8),
        10..15 => STACK + u64::from(source.byte()) * 8 % (length * 8),
        15 if source.below(2) == 0 => u64::from(source.byte()) << 28,
        _ => source.word(),
    }
}
