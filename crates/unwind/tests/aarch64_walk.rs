//! Walks for 64-bit ARM over handwritten stacks: the link register, signatures, the kernel's signal frames and code
//! without rules.

mod bytes;

use std::collections::HashMap;

use bytes::{FUNCTION, Frames, SECTION, absolute};
use plumb_unwind::aarch64::{FP, Registers, X30};
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Isa, Located, Memory, Method, Module, ReadError, Section, Sections, Svma,
    Walked, walk,
};

/// Functions of 0x100 bytes each. This one has its return address in the link register. The others: a frame record at
/// the bottom of a frame of 32 bytes, a frame record at the frame pointer, and the rules that some kernels give for
/// their signal code.
const LEAF: u64 = FUNCTION;
const FRAMED: u64 = FUNCTION + 0x100;
const BY_FP: u64 = FUNCTION + 0x200;
const VDSO: u64 = FUNCTION + 0x300;
const JIT: u64 = 0x6000_0000;
/// The kernel's signal code, without rules, at the very start of its mapping.
const TRAMPOLINE: u64 = 0x7000_0000;
const STACK: u64 = 0xffff_0000_0000;
/// A return address that is not code, which ends the walk.
const NOWHERE: u64 = 0x1234;

struct Process {
    module: Module<Vec<u8>>,
    bits: u32,
}

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 {
            FUNCTION..0x40_1000 => Located::Module { module: &self.module, bias: 0 },
            JIT..0x6000_1000 | TRAMPOLINE..0x7000_1000 => Located::NoInfo,
            _ => Located::Unmapped,
        }
    }

    fn address_bits(&self) -> u32 {
        self.bits
    }
}

fn process(bits: u32) -> Process {
    let mut frames = Frames::default();
    // def_cfa sp+0
    let cie = frames.cie("zR", &[0], &[0x0c, 31, 0]);
    let signal = frames.cie("zRS", &[0], &[]);
    frames.fde(cie, &absolute(LEAF, 0x100), Some(&[]), &[]);
    // def_cfa_offset 32; offset x29 cfa-32; offset return address cfa-24 (the column is 16 in this CIE)
    frames.fde(cie, &absolute(FRAMED, 0x100), Some(&[]), &[0x0e, 32, 0x80 | 29, 4, 0x90, 3]);
    // def_cfa x29+16; the record is just below
    frames.fde(cie, &absolute(BY_FP, 0x100), Some(&[]), &[0x0c, 29, 16, 0x80 | 29, 2, 0x90, 1]);
    // def_cfa x29+0; x29 at cfa, return address at cfa+8 (offset_extended_sf)
    let record = [0x0c, 29, 0, 0x11, 29, 0, 0x11, 16, 0x7f];
    frames.fde(signal, &absolute(VDSO, 0x100), Some(&[]), &record);
    let eh_frame = Some(Section { address: Svma(SECTION), bytes: frames.bytes });
    Process { module: Module::new(Sections { eh_frame, isa: Isa::Aarch64, ..Sections::default() }), bits }
}

#[derive(Clone)]
struct Words(HashMap<u64, u64>);

impl Words {
    fn new(words: &[(u64, u64)]) -> Words {
        let stack = words.iter().map(|&(index, value)| (STACK + 8 * index, value));
        Words(stack.chain([(TRAMPOLINE, 0xd400_0001_d280_1168)]).collect())
    }
}

impl Memory for Words {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        match at.0 {
            STACK..0xffff_0001_0000 => Ok(self.0.get(&at.0).copied().unwrap_or(0)),
            at => self.0.get(&at).copied().ok_or(ReadError::Unreadable),
        }
    }
}

fn start(pc: u64, lr: u64, fp: u64) -> Registers {
    let mut registers = Registers::new(pc, STACK);
    registers.set(X30, lr);
    registers.set(FP, fp);
    registers
}

fn run(bits: u32, words: &[(u64, u64)], start: &Registers) -> (Vec<Walked>, End) {
    let mut frames = Vec::new();
    let mut memory = Words::new(words);
    let end = walk(&process(bits), &mut memory, &mut Cache::default(), start, 50, &mut frames);
    (frames, end)
}

fn pcs(frames: &[Walked]) -> Vec<u64> {
    frames.iter().map(|frame| frame.pc.0).collect()
}

#[test]
fn a_leaf_has_its_return_address_in_the_link_register() {
    let words = [(0, STACK + 8 * 6), (1, BY_FP + 4), (7, NOWHERE)];
    let (frames, end) = run(48, &words, &start(LEAF, FRAMED + 8, STACK + 32));
    assert_eq!((pcs(&frames), end), (vec![LEAF, FRAMED + 8, BY_FP + 4, NOWHERE], End::NotMapped));
    assert_eq!(frames[1].slot, Avma(0));
    assert_eq!(frames[2].slot, Avma(STACK + 8));
    // Only the innermost frame may have its return address in the link register.
    let (frames, end) = run(48, &[], &start(LEAF, LEAF + 8, 0));
    assert_eq!((pcs(&frames), end), (vec![LEAF, LEAF + 8], End::RegisterUnknown));
}

#[test]
fn signatures_are_taken_off() {
    let signed = |pc: u64, signature: u64, bits: u32| pc | signature << bits;
    let words = [(0, STACK + 8 * 6), (1, signed(BY_FP + 4, 0x7b, 48)), (7, signed(NOWHERE, 0x55, 48))];
    let (frames, _) = run(48, &words, &start(LEAF, signed(FRAMED + 8, 0x12, 48), STACK + 32));
    assert_eq!(pcs(&frames), [LEAF, FRAMED + 8, BY_FP + 4, NOWHERE]);
    // Smaller address spaces leave more bits for signatures.
    let words = [(1, signed(BY_FP + 4, 0x1ffff, 39))];
    let (frames, _) = run(39, &words, &start(FRAMED, 0, STACK + 32));
    assert_eq!(pcs(&frames)[..2], [FRAMED, BY_FP + 4]);
}

/// A signal frame at word `at` of the stack, with the interrupted `x29`, `x30`, `sp` and `pc`.
fn signal_frame(at: u64, fp: u64, lr: u64, sp: u64, pc: u64) -> [(u64, u64); 4] {
    let x0 = at + (128 + 176 + 8) / 8;
    [(x0 + 29, fp), (x0 + 30, lr), (x0 + 31, sp), (x0 + 32, pc)]
}

#[test]
fn a_signal_frame_yields_where_it_struck() {
    // The handler returns to the kernel's code; the signal frame holds the registers of a leaf.
    let sp = STACK + 8 * 200;
    for (returns_to, record) in [(TRAMPOLINE, 0), (VDSO + 4, 150)] {
        let frame = signal_frame(4, sp, FRAMED + 8, sp, LEAF);
        let stack = [(0, STACK + 8 * record), (1, returns_to), (150, 77), (151, 0x7777), (200, 0), (201, 0)];
        let words = [&stack[..], &frame[..]].concat();
        let (frames, end) = run(48, &words, &start(FRAMED + 4, 0, 0));
        assert_eq!(pcs(&frames), [FRAMED + 4, returns_to, LEAF, FRAMED + 8], "{returns_to:#x}");
        assert_eq!(end, End::Root);
        assert!(!frames[2].is_return && frames[3].is_return);
        assert_eq!(frames[2].slot, Avma(STACK + 8 * (4 + 39 + 32)));
    }
}

#[test]
fn both_instructions_of_the_signal_code_are_recognized() {
    let sp = STACK + 8 * 200;
    for pc in [TRAMPOLINE, TRAMPOLINE + 4] {
        let words = signal_frame(0, sp, FRAMED + 8, sp, LEAF);
        let (frames, _) = run(48, &words, &start(pc, 0, 0));
        assert_eq!(pcs(&frames)[..3], [pc, LEAF, FRAMED + 8]);
    }
}

#[test]
fn frame_pointers_where_rules_are_missing() {
    // Two frames of JIT code, then one whose rule needs the stack pointer, which its frame record gives, and its
    // caller's.
    let words = [
        (4, STACK + 8 * 10),
        (5, JIT + 9),
        (10, STACK + 8 * 20),
        (11, FRAMED + 8),
        (20, STACK + 8 * 30),
        (21, FRAMED + 16),
        (24, 0),
        (25, 0),
    ];
    let (frames, end) = run(48, &words, &start(JIT, 0, STACK + 32));
    assert_eq!(pcs(&frames), [JIT, JIT + 9, FRAMED + 8, FRAMED + 16]);
    // The last frame's record is at its stack pointer, not at its frame pointer.
    assert_eq!(end, End::Root);
    let found: Vec<_> = frames.iter().map(|frame| frame.found).collect();
    assert_eq!(found[..3], [Method::Sampled, Method::FramePointer, Method::FramePointer]);
}

#[test]
fn code_without_rules_or_mapping_has_its_caller_in_the_link_register() {
    let stub = FUNCTION + 0x800;
    for pc in [stub, 0x10, JIT] {
        let (frames, end) = run(48, &[], &start(pc, FRAMED + 8, 7));
        assert_eq!((pcs(&frames), end), (vec![pc, FRAMED + 8], End::Root), "{pc:#x}");
    }
    assert_eq!(run(48, &[], &start(stub, NOWHERE, 7)).1, End::NoUnwindInfo);
    assert_eq!(run(48, &[], &start(0x10, NOWHERE, 7)).1, End::NotMapped);
}

/// The kernel replaces a probed return address by that of its breakpoint, in the last page of user memory.
#[test]
fn returns_that_are_probed_end_the_stack_with_that_reason() {
    for page in [(1_u64 << 48) - (4 << 10), (1 << 48) - (16 << 10), (1 << 52) - (64 << 10)] {
        let (frames, end) = run(52, &[], &start(LEAF, page, 0));
        assert_eq!((pcs(&frames), end), (vec![LEAF], End::ProbedReturn), "{page:x}");
    }
    let (_, end) = run(52, &[], &start(LEAF, (1 << 48) - 0x2000, 0));
    assert_eq!(end, End::NotMapped);
}

#[test]
fn files_for_other_architectures_are_not_believed() {
    let mut process = process(48);
    let sections = Sections { isa: Isa::X86_64, ..process.module.sections().clone() };
    process.module = Module::new(sections);
    let mut frames = Vec::new();
    let registers = start(LEAF, FRAMED + 8, 0);
    let end = walk(&process, &mut Words::new(&[]), &mut Cache::default(), &registers, 50, &mut frames);
    assert_eq!((pcs(&frames), end), (vec![LEAF], End::BadUnwindInfo));
}
