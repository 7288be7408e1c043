//! Random bytes as call-frame information: row lookups and walks terminate, with a result or an error.

use plumb_unwind::{
    Architecture, Cache, Isa, Module, RegisterSet, Registers, Section, Sections, Svma, aarch64, walk,
};

use super::{LIMIT, Process, STACK, Source, Words};

/// Runs one input. The first bytes select which sections exist, the architecture, the stack's length and where the
/// walk begins; then come the stack, up to 64 bytes of `.eh_frame_hdr`, and the section.
pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let (shape, pc, length) =
        (source.byte(), u64::from(source.byte()) | u64::from(source.byte()) << 8, source.byte());
    let words: Vec<u64> = (0..length).map(|_| source.word()).collect();
    let header = source.take(if shape & 4 != 0 { 64 } else { 0 });
    let body = source.0;
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let isa = if shape & 8 != 0 { Isa::Aarch64 } else { Isa::X86_64 };
    let (text, got) = (Some(Svma(0x1000)), Some(Svma(0x2000)));
    let mut sections = Sections { text, got, isa, ..Sections::default() };
    if shape & 1 != 0 {
        sections.eh_frame = section(0x1000, body);
    }
    if shape & 2 != 0 {
        sections.debug_frame = section(0, body);
    }
    if shape & 4 != 0 {
        sections.eh_frame_hdr = section(0x800, header);
    }
    let process = Process(Module::new(sections));
    for at in 0..32 {
        let _ = std::hint::black_box(process.0.row(Svma(pc.wrapping_add(at * 37))));
    }
    match isa {
        Isa::Aarch64 => walks(&process, aarch64::Registers::new(pc, STACK + 64), &words),
        _ => walks(&process, Registers::new(pc, STACK + 64), &words),
    }
}

/// Walks twice from the same registers.
fn walks<A: Architecture>(process: &Process<'_>, mut registers: RegisterSet<A>, words: &[u64]) {
    for register in (0..A::PC).filter(|&register| register != A::SP || A::LR.is_none()) {
        registers.set(register, STACK + 128 + u64::from(register) * 40);
    }
    let mut cache = Cache::default();
    let mut frames = Vec::new();
    for _ in 0..2 {
        let mut stack = Words::new(words);
        let end = walk(process, &mut stack, &mut cache, &registers, LIMIT, &mut frames);
        assert!(frames.len() <= LIMIT, "{end:?} after {} frames", frames.len());
        // Each register of a frame is read through an expression of bounded length, and walks rarely start again.
        assert!(stack.reads.get() <= 5 * LIMIT * 33 * 512, "{} reads", stack.reads.get());
    }
}
