//! Walks for 64-bit ARM that depend on instructions: code without rules, and rules that say less than the code does.

mod bytes;

use std::collections::HashMap;

use bytes::{FUNCTION, Frames, SECTION, absolute};
use plumb_unwind::aarch64::{FP, Registers, X30};
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Isa, Located, Memory, Module, ReadError, Section, Sections, Svma, Walked, walk,
};

/// Functions of 0x100 bytes each: one with a frame record at the bottom of a frame of 32 bytes, which every walk here
/// goes through; a leaf; one that has popped its return address; one that a stub jumps to with its return address pushed; one
/// that keeps its return address in `x13`; one with the rules of what it jumps to; one that may leave for a handler; a start routine;
/// one that removes a large frame; one whose frame has vectors of a length that the processor has.
const CALLER: u64 = FUNCTION;
const LEAF: u64 = FUNCTION + 0x100;
const POPPED: u64 = FUNCTION + 0x200;
const PUSHED: u64 = FUNCTION + 0x300;
const KEEPS: u64 = FUNCTION + 0x400;
const JUMPS: u64 = FUNCTION + 0x500;
const UNWINDS: u64 = FUNCTION + 0x600;
const STARTS: u64 = FUNCTION + 0x700;
const LARGE: u64 = FUNCTION + 0x800;
const VECTORS: u64 = FUNCTION + 0x900;
/// Code without rules.
const CODE: u64 = 0x6000_0000;
const STACK: u64 = 0xffff_0000_0000;
/// A return address that is not code, which ends the walk.
const NOWHERE: u64 = 0x1234;

struct Process(Module<Vec<u8>>);

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 {
            FUNCTION..0x40_1000 => Located::Module { module: &self.0, bias: 0 },
            CODE..0x6000_1000 => Located::NoInfo,
            _ => Located::Unmapped,
        }
    }
}

fn process() -> Process {
    let mut frames = Frames::default();
    // def_cfa sp+0
    let cie = frames.cie("zR", &[0], &[0x0c, 31, 0]);
    // def_cfa_offset 32; offset x29 cfa-32; offset return address cfa-24 (the column is 16 in this CIE)
    frames.fde(cie, &absolute(CALLER, 0x100), Some(&[]), &[0x0e, 32, 0x80 | 29, 4, 0x90, 3]);
    frames.fde(cie, &absolute(LEAF, 0x100), Some(&[]), &[]);
    // offset return address cfa-16
    frames.fde(cie, &absolute(POPPED, 0x100), Some(&[]), &[0x90, 2]);
    // advance_loc 4; offset_extended_sf return address cfa+8
    frames.fde(cie, &absolute(PUSHED, 0x100), Some(&[]), &[0x44, 0x11, 16, 0x7f]);
    // register return address x13
    frames.fde(cie, &absolute(KEEPS, 0x100), Some(&[]), &[0x09, 16, 13]);
    // advance_loc 4; def_cfa x0+0; offset_extended_sf return address cfa+88
    frames.fde(cie, &absolute(JUMPS, 0x100), Some(&[]), &[0x44, 0x0c, 0, 0, 0x11, 16, 0x75]);
    // def_cfa_offset 64; offset x0 cfa-48; offset x29 cfa-64; offset return address cfa-56
    let unwinds = [0x0e, 64, 0x80, 6, 0x80 | 29, 8, 0x90, 7];
    frames.fde(cie, &absolute(UNWINDS, 0x80), Some(&[]), &unwinds);
    // undefined return address
    frames.fde(cie, &absolute(STARTS, 0x100), Some(&[]), &[0x07, 16]);
    // def_cfa_offset 64; advance_loc 4; def_cfa_offset 0
    frames.fde(cie, &absolute(LARGE, 0x100), Some(&[]), &[0x0e, 64, 0x44, 0x0e, 0]);
    // def_cfa_expression: sp + 16 * VG
    let vectors = [0x0f, 8, 0x8f, 0, 0x92, 46, 0, 0x40, 0x1e, 0x22];
    frames.fde(cie, &absolute(VECTORS, 0x100), Some(&[]), &vectors);
    let eh_frame = Some(Section { address: Svma(SECTION), bytes: frames.bytes });
    Process(Module::new(Sections { eh_frame, isa: Isa::Aarch64, ..Sections::default() }))
}

/// Instructions by address, and the words of the stack from [`STACK`] on.
struct Contents {
    code: HashMap<u64, u32>,
    stack: Vec<u64>,
}

impl Memory for Contents {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let index = at.0.checked_sub(STACK).ok_or(ReadError::Unreadable)? / 8;
        self.stack.get(index as usize).copied().ok_or(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        for (address, bytes) in (at.0..).step_by(4).zip(to.chunks_mut(4)) {
            let word = self.code.get(&address).copied().unwrap_or(0);
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        true
    }
}

/// `bl UNWINDS` at `CALLER + 4`.
const CALL: u32 = 0x9400_0000 + (UNWINDS - CALLER - 4) as u32 / 4;

/// As [`run_at`], with code without rules.
fn run(code: &[u32], words: &[u64], caller: usize, change: impl Fn(&mut Registers)) -> (Vec<Walked>, End) {
    run_at(CODE, code, words, caller, change)
}

/// Walks from `at`, from where on there is `code`. The caller's frame is at the word `caller` of the stack, behind `words`, and its call is
/// there. The frame pointer is the caller's.
fn run_at(
    at: u64,
    code: &[u32],
    words: &[u64],
    caller: usize,
    change: impl Fn(&mut Registers),
) -> (Vec<Walked>, End) {
    let mut stack = words.to_vec();
    stack.resize(caller, 0x7777);
    stack.extend([0, NOWHERE, 0, 0, 0]);
    let mut contents = Contents { code: (at..).step_by(4).zip(code.iter().copied()).collect(), stack };
    contents.code.insert(CALLER + 4, CALL);
    let mut start = Registers::new(at, STACK);
    start.set(X30, CALLER + 8);
    start.set(FP, STACK + 8 * caller as u64);
    change(&mut start);
    let mut frames = Vec::new();
    let end = walk(&process(), &mut contents, &mut Cache::default(), &start, 50, &mut frames);
    (frames, end)
}

/// Asserts that the walk goes from the first frame to the caller and on.
#[track_caller]
fn check((frames, end): (Vec<Walked>, End), pcs: &[u64]) {
    let found: Vec<_> = frames.iter().map(|frame| frame.pc.0).collect();
    assert_eq!((&*found, end), (&[pcs, &[CALLER + 8, NOWHERE]].concat()[..], End::NotMapped));
}

const RET: u32 = 0xd65f_03c0;
const SVC: u32 = 0xd400_0001;

#[test]
fn stubs_and_leaves_have_not_made_a_frame() {
    // adrp x16; ldr x17, [x16]; add x16, x16, #0; br x17
    check(run(&[0x9000_0010, 0xf940_0211, 0x9100_0210, 0xd61f_0220], &[], 0, |_| {}), &[CODE]);
    // bti c; tst x0, #7; b.eq .+12; sub x1, x1, #1; b .-12; ret
    check(
        run(&[0xd503_245f, 0xf240_081f, 0x5400_0060, 0xd100_0421, 0x17ff_fffd, RET], &[], 0, |_| {}),
        &[CODE],
    );
    // paciasp; stp x29, x30, [sp, #-32]!
    check(run(&[0xd503_233f, 0xa9be_7bfd], &[], 0, |_| {}), &[CODE]);
}

#[test]
fn the_stub_for_lazy_binding_has_pushed_the_return_address() {
    // stp x16, x30, [sp, #-16]!; adrp x16; ldr x17, [x16]; add x16, x16, #0; br x17
    let code = [0xa9bf_7bf0, 0x9000_0010, 0xf940_0211, 0x9100_0210, 0xd61f_0220];
    check(run(&code, &[], 0, |_| {}), &[CODE]);
    for at in [1, 2, 4] {
        let pc = CODE + 4 * at;
        let found = run(&code, &[0x5555, CALLER + 8], 2, |start| start.set(32, pc));
        check(found, &[pc]);
    }
}

#[test]
fn frames_are_removed_as_the_code_will_do() {
    // bl .; ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; autiasp; ret
    let code = [0x9400_0000, 0xf940_0bf3, 0xa8c2_7bfd, 0xd503_23bf, RET];
    let words = [STACK + 32, CALLER + 8, 0x19, 0];
    for at in [1, 2] {
        let pc = CODE + 4 * at;
        let found = run(&code, &words, 4, |start| {
            start.set(32, pc);
            start.set(X30, CODE + 4);
            start.set(FP, STACK);
        });
        check(found, &[pc]);
    }
    // str x30, [sp, #-16]!; bl .; ldr x30, [sp], #16; b .+4; ret
    check(run(&[0xf81f_0ffe, 0x9400_0000, 0xf841_07fe, 0x1400_0001, RET], &[], 0, |_| {}), &[CODE]);
}

#[test]
fn a_popped_return_address_is_in_the_link_register() {
    check(run(&[], &[], 0, |start| start.set(32, POPPED)), &[POPPED]);
}

#[test]
fn a_return_address_that_a_stub_has_pushed_ends_the_frame() {
    for pc in [PUSHED, PUSHED + 4] {
        check(run(&[], &[0x5555, CALLER + 8], 2, |start| start.set(32, pc)), &[pc]);
    }
}

#[test]
fn a_leaf_may_preserve_more_than_calls_have_to() {
    let found = run(&[], &[], 0, |start| {
        start.set(32, LEAF);
        start.set(X30, KEEPS + 8);
        start.set(13, CALLER + 8);
    });
    check(found, &[LEAF, KEEPS + 8]);
}

#[test]
fn a_new_thread_has_no_caller() {
    // svc #0; cbz x0, .+8; ret; mov x29, #0; blr x10; mov x8, #93; svc #0
    let cbz = [SVC, 0xb400_0040, RET, 0xd280_001d, 0xd63f_0140, 0xd280_0ba8, SVC];
    // svc #0; cmp x0, #0; b.eq .+8; ret; ...
    let compared = [SVC, 0xf100_001f, 0x5400_0040, RET, 0xd280_001d, 0xd63f_0140, 0xd280_0ba8, SVC];
    for (code, pcs) in [(&cbz[..], &[1][..]), (&compared, &[1, 2])] {
        for at in pcs {
            let walked = |result| {
                let (frames, end) = run(code, &[], 0, |start| {
                    start.set(32, CODE + 4 * at);
                    start.set(0, result);
                });
                (frames.len(), end)
            };
            assert_eq!(walked(0), (1, End::Root), "{at}");
            assert_ne!(walked(77), (1, End::Root), "the thread that made it");
        }
    }
}

#[test]
fn code_contradicts_rules_that_describe_calls_alone() {
    // The rules of a function with a frame, behind: ldp x29, x30, [sp], #32; autiasp; b .+4; stp x29, x30, [sp, #-16]!
    let code = [0xd503_23bf, 0x1400_0001, 0xa9bf_7bfd];
    check(run_at(CALLER + 0x40, &code, &[], 0, |_| {}), &[CALLER + 0x40]);
    // The rules of a leaf, behind: stp x29, x30, [sp, #-16]!. Then: mov x29, sp; sub sp, sp, x0; mov sp, x29; ldp x29, x30, [sp], #16; ret
    let code = [0xa9bf_7bfd, 0x9100_03fd, 0xcb20_63ff, 0x9100_03bf, 0xa8c1_7bfd, RET];
    let words = [STACK + 16, CALLER + 8];
    check(run_at(LEAF, &code, &words, 2, |start| start.set(32, LEAF + 4)), &[LEAF + 4]);
    // mov x1, x30; bl .; mov x30, x1; ret
    let code = [0xaa1e_03e1, 0x9400_0000, 0xaa01_03fe, RET];
    let found = run_at(LEAF, &code, &[], 0, |start| {
        start.set(32, LEAF + 8);
        start.set(X30, LEAF + 8);
        start.set(1, CALLER + 8);
    });
    check(found, &[LEAF + 8]);
}

#[test]
fn code_that_replaces_all_registers_has_a_caller_up_to_there() {
    // mov x13, x30; ldp x19, x20, [x0]; tbnz w16, #0, .+8; b .-8; eor x30, x4, x3; eor x5, x4, x3; mov sp, x5; cmp x1, #0; br x30
    let code = [
        0xaa1e_03ed,
        0xa940_5013,
        0x3700_0050,
        0x17ff_fffe,
        0xca03_009e,
        0xca03_0085,
        0x9100_00bf,
        0xf100_003f,
        0xd61f_03c0,
    ];
    for at in [1, 2, 4] {
        let pc = JUMPS + 4 * at;
        check(run_at(JUMPS, &code, &[], 0, |start| start.set(32, pc)), &[pc]);
    }
    // The link register has the target's address, but x13 has the caller's still.
    let pc = JUMPS + 4 * 6;
    let found = run_at(JUMPS, &code, &[], 0, |start| {
        start.set(32, pc);
        start.set(X30, LEAF + 8);
        start.set(13, CALLER + 8);
    });
    check(found, &[pc]);
    // The stack pointer is the target's.
    let pc = JUMPS + 4 * 7;
    check(run_at(JUMPS, &code, &[], 0, |start| start.set(32, pc)), &[pc]);
    // No register has the caller's address.
    let code = [0xd503_201f, 0xca03_009e, 0xca03_0085, 0x9100_00bf, 0xd61f_03c0];
    let (frames, end) = run_at(JUMPS, &code, &[], 0, |start| start.set(32, JUMPS + 8));
    assert_eq!((frames.len(), end), (1, End::RegisterUnknown));
}

#[test]
fn code_without_a_frame_goes_to_a_handler() {
    // cbz x4, .+12; add sp, sp, x5; br x6; ret
    let code = [0xb400_0064, 0x8b25_63ff, 0xd61f_00c0, RET];
    for (at, distance, expected) in
        [(0, 32, (1, End::RegisterUnknown)), (1, 32, (1, End::RegisterUnknown)), (2, 32, (3, End::NotMapped))]
    {
        let (frames, end) = run_at(LEAF, &code, &[], 0, |start| {
            start.set(32, LEAF + 4 * at);
            start.set(5, distance);
            start.set(6, CALLER + 8);
        });
        assert_eq!((frames.len(), end), expected, "{at}");
        assert!(frames.iter().skip(1).take(1).all(|frame| !frame.is_return), "the handler has called nobody");
    }
    // The function returns.
    let added = [0x8b24_63ff, RET];
    for at in [0, 1] {
        let pc = LEAF + 4 * at;
        let found = run_at(LEAF, &added, &[], 0, |start| {
            start.set(32, pc);
            start.set(4, 0);
        });
        check(found, &[pc]);
    }
    // A large frame, too, is removed by such an instruction.
    let pc = LARGE + 4;
    let (frames, end) = run_at(LARGE, &added, &[], 0, |start| {
        start.set(32, pc);
        start.set(4, 64);
    });
    assert!(frames.iter().skip(1).all(|frame| frame.is_return), "{frames:?}");
    check((frames, end), &[pc]);
}

#[test]
fn an_unwinder_keeps_its_first_return_address() {
    // The slot has that of a handler's function by now, and the frame has the caller's.
    let words = [STACK + 640, LEAF + 8, 0, 0, 0x1111, CALLER + 8, 0, 0];
    let code = [0xd503_201f, 0xd503_201f];
    check(run_at(UNWINDS, &code, &words, 8, |start| start.set(32, UNWINDS + 4)), &[UNWINDS + 4]);
    // Code that leaves for the handler, which follows a call of the unwinder itself: ldp x29, x30, [sp]; add sp, sp, #64; add sp, sp, x4; ret
    let words = [STACK + 640, CALLER + 8, 0, 0, 0x1111, CALLER + 8, 0, 0];
    let code = [0xd503_201f, 0xa940_7bfd, 0x9101_03ff, 0x8b24_63ff, RET];
    check(run_at(UNWINDS, &code, &words, 8, |start| start.set(32, UNWINDS + 4)), &[UNWINDS + 4]);
}

#[test]
fn code_behind_a_start_routine_shares_its_rules() {
    // nop; mov x29, #0; mov x30, #0; bl .; nop; b .+4; stp x29, x30, [sp, #-16]!
    let code = [0xd503_201f, 0xd280_001d, 0xd280_001e, 0x9400_0000, 0xd503_201f, 0x1400_0001, 0xa9bf_7bfd];
    let pc = STARTS + 16;
    check(run_at(STARTS, &code, &[], 0, |start| start.set(32, pc)), &[pc]);
    let (frames, end) = run_at(STARTS, &code, &[], 0, |start| start.set(X30, 0));
    assert_eq!((frames.len(), end), (1, End::Root));
}

/// The kernel gives the length of vectors with hardware events alone.
#[test]
fn a_frame_with_vectors_needs_their_length() {
    let (frames, end) = run_at(VECTORS, &[RET], &[], 0, |start| start.set(X30, 0));
    assert_eq!((frames.len(), end), (1, End::RegisterUnknown));
}
