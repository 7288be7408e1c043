//! Walks over handwritten stacks: how a walk ends, and which evidence it accepts.

mod bytes;

use std::collections::HashMap;

use bytes::{FUNCTION, Frames, LENGTH, USUAL, absolute, one_function};
use plumb_unwind::table::Table;
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Located, Memory, Method, Module, ReadError, Registers, ReturnSlots, Walked,
    Window, trace, walk,
};

/// Load bias of the module.
const BIAS: u64 = 0x7f00_0000_0000;
const CODE: u64 = BIAS + FUNCTION;
const JIT: u64 = 0x6000_0000;
const SECRET: u64 = 0x5000_0000;
const STACK: u64 = 0x7ffd_0000_0000;

/// Process with one module, some JIT code, and a file that cannot be opened.
struct Process(Module<Vec<u8>>);

/// As [`Process`], but with a runtime that ends chains of frame pointers with zero.
struct Chained(Process);

impl CodeMap for Chained {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        self.0.locate(pc)
    }

    fn ends_chains_with_zero(&self) -> bool {
        true
    }
}

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 {
            pc if (CODE..CODE + 2 * LENGTH).contains(&pc) => Located::Module { module: &self.0, bias: BIAS },
            JIT..0x6000_1000 => Located::NoInfo,
            SECRET..0x5000_1000 => Located::Unreadable,
            _ => Located::Unmapped,
        }
    }
}

/// A stack of 64 words from [`STACK`].
#[derive(Clone)]
struct Stack(HashMap<u64, u64>);

impl Stack {
    fn new(words: &[(u64, u64)]) -> Stack {
        Stack(words.iter().map(|&(word, value)| (STACK + 8 * word, value)).collect())
    }
}

impl Memory for Stack {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        match at.0 {
            at if at >= STACK + 64 * 8 => Err(ReadError::BeyondCopy),
            at if at < STACK || at % 8 != 0 => Err(ReadError::Unreadable),
            at => Ok(self.0.get(&at).copied().unwrap_or(0)),
        }
    }
}

fn start(ip: u64) -> Registers {
    let mut registers = Registers::new(ip, STACK);
    for register in [3, 6, 10, 12] {
        registers.set(register, 0);
    }
    registers
}

/// A stack that is also available as words.
struct Words(Stack, Vec<u64>);

impl Memory for Words {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.0.read_u64(at)
    }

    fn window(&self) -> Option<Window<'_>> {
        Some(Window { base: Avma(STACK), words: &self.1 })
    }
}

/// Walks by reading words one by one. Asserts that walks with a window, with and without cached rules, and walks that
/// yield only slots have the same result.
fn run(module: Module<Vec<u8>>, stack: &Stack, start: &Registers) -> (Vec<Walked>, End) {
    run_in(&Process(module), stack, start)
}

fn run_in(process: &impl CodeMap, stack: &Stack, start: &Registers) -> (Vec<Walked>, End) {
    let mut frames = Vec::new();
    let end = walk(process, &mut stack.clone(), &mut Cache::default(), start, 100, &mut frames);
    for length in [64, 9, 0] {
        let words = (0..length).map(|word| stack.0.get(&(STACK + 8 * word)).copied().unwrap_or(0)).collect();
        let (mut words, mut cache) = (Words(stack.clone(), words), Cache::fixed(0));
        let mut trail = ReturnSlots::new(100);
        for cached in [false, true, true] {
            let mut same = Vec::new();
            let end_by_words = walk(process, &mut words, &mut cache, start, 100, &mut same);
            assert_eq!((&same, end_by_words), (&frames, end), "{length} words, cached: {cached}");
            let end_by_slots = trace(process, &mut words, &mut cache, start, &mut trail);
            let mut others = trail.others().iter().map(|&(_, frame)| frame);
            let callers: Vec<_> = trail
                .slots()
                .iter()
                .map(|&slot| match slot {
                    ReturnSlots::OTHER => others.next().expect("listed whole"),
                    slot => {
                        let slot = u64::from(slot);
                        let pc = Avma(words.1[slot as usize]);
                        Walked { pc, is_return: true, found: Method::Cfi, slot: Avma(STACK + 8 * slot) }
                    }
                })
                .collect();
            assert_eq!((&callers[..], end_by_slots), (&frames[1..], end), "{length} words, cached: {cached}");
        }
    }
    (frames, end)
}

fn pcs(frames: &[Walked]) -> Vec<u64> {
    frames.iter().map(|frame| frame.pc.0).collect()
}

/// Returns a module whose frames have two words each.
fn plain() -> Module<Vec<u8>> {
    one_function("zR", USUAL, &[0x0e, 16])
}

#[test]
fn callers_up_to_a_return_address_of_zero() {
    let stack = Stack::new(&[(1, CODE + 0x10), (3, CODE + 0x20)]);
    let (frames, end) = run(plain(), &stack, &start(CODE));
    assert_eq!(end, End::Root);
    let slot = |word: u64| Avma(STACK + 8 * word);
    let frame = |pc, is_return, found, slot| Walked { pc: Avma(pc), is_return, found, slot };
    assert_eq!(
        frames,
        [
            frame(CODE, false, Method::Sampled, Avma(0)),
            frame(CODE + 0x10, true, Method::Cfi, slot(1)),
            frame(CODE + 0x20, true, Method::Cfi, slot(3)),
        ]
    );
}

#[test]
fn an_undefined_return_address_is_the_root() {
    let module = one_function("zR", USUAL, &[0x07, 16]);
    let stack = Stack::new(&[(0, CODE + 1)]);
    assert_eq!(run(module, &stack, &start(CODE)).1, End::Root);
}

#[test]
fn a_return_address_after_its_function_belongs_to_the_call() {
    // The call is the last instruction of the function; the next instruction has other rules.
    let mut section = Frames::default();
    let cie = section.cie("zR", &[0], USUAL);
    section.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[]), &[0x0e, 16]);
    section.fde(cie, &absolute(FUNCTION + LENGTH, LENGTH), Some(&[]), &[0x07, 16]);
    let stack = Stack::new(&[(1, CODE + LENGTH), (3, CODE + LENGTH + 1)]);
    let (frames, end) = run(section.module(), &stack, &start(CODE));
    assert_eq!(end, End::Root);
    assert_eq!(pcs(&frames), [CODE, CODE + LENGTH, CODE + LENGTH + 1]);
}

#[test]
fn memory_that_is_not_there_ends_the_walk() {
    let deep = one_function("zR", USUAL, &[0x0e, 0x80, 8]);
    assert_eq!(run(deep, &Stack::new(&[]), &start(CODE)).1, End::BeyondCopy);
    let mut below = start(CODE);
    below.set(7, STACK - 4096);
    assert_eq!(run(plain(), &Stack::new(&[]), &below).1, End::StackUnreadable);
}

#[test]
fn code_that_is_not_known_ends_the_walk() {
    let ends = [
        (0x1234, End::NotMapped),
        (u64::MAX - 5, End::NotMapped),
        (SECRET + 5, End::FileUnreadable),
        (CODE + LENGTH + 5, End::NoUnwindInfo),
        (JIT + 5, End::NoUnwindInfo),
    ];
    for (address, expected) in ends {
        let (frames, end) = run(plain(), &Stack::new(&[(1, address), (2, 7)]), &start(CODE));
        assert_eq!(end, expected, "{address:#x}");
        assert_eq!(pcs(&frames), [CODE, address], "the frame itself is known");
    }
    let bad = one_function("zR", USUAL, &[0x3f]);
    assert_eq!(run(bad, &Stack::new(&[]), &start(CODE)).1, End::BadUnwindInfo);
}

#[test]
fn walks_are_bounded() {
    // The CFA is found through rbp, which leads back to the same frame.
    let module = one_function("zR", USUAL, &[0x0c, 6, 16, 0x80 | 6, 2]);
    let mut registers = start(CODE);
    registers.set(6, STACK);
    let stack = Stack::new(&[(0, STACK), (1, CODE + 1)]);
    let (frames, end) = run(module, &stack, &registers);
    assert_eq!(end, End::NotAdvancing);
    assert!(frames.len() < 50);
    let mut frames = Vec::new();
    let stack = Stack::new(&(0..64).map(|word| (word, CODE + 1)).collect::<Vec<_>>());
    let end =
        walk(&Process(plain()), &mut stack.clone(), &mut Cache::default(), &start(CODE), 5, &mut frames);
    assert_eq!((end, frames.len()), (End::TooManyFrames, 5));
    let end =
        walk(&Process(plain()), &mut stack.clone(), &mut Cache::default(), &start(CODE), 0, &mut frames);
    assert_eq!((end, frames.len()), (End::TooManyFrames, 0));
}

#[test]
fn registers_that_compact_rules_drop_are_found_again() {
    // Before 0x100, rbx is saved in the frame; from 0x100 on, the CFA is rbx + 16.
    let module = one_function("zR", USUAL, &[0x0e, 24, 0x83, 3, 0x04, 0, 1, 0, 0, 0x0c, 3, 16]);
    let stack = Stack::new(&[
        (0, STACK + 8 * 10),
        (2, CODE + 0x10),
        (3, STACK + 8 * 20),
        (5, CODE + 0x180),
        (11, 0),
        (21, CODE + 0x20),
    ]);
    let (frames, end) = run(module, &stack, &start(CODE));
    // The frame at 0x180 needs rbx, which the second frame saved.
    assert_eq!(pcs(&frames), [CODE, CODE + 0x10, CODE + 0x180, CODE + 0x20]);
    assert_eq!(end, End::Root);
}

#[test]
fn registers_that_calls_do_not_preserve_are_unknown() {
    let module = one_function("zR", USUAL, &[0x0e, 16, 0x04, 0, 1, 0, 0, 0x0c, 10, 16]);
    let stack = Stack::new(&[(1, CODE + 0x180)]);
    let mut registers = start(CODE);
    registers.set(10, STACK + 64);
    assert_eq!(run(module, &stack, &registers).1, End::RegisterUnknown);
    // In the first frame it is known.
    let module = one_function("zR", USUAL, &[0x0c, 10, 16]);
    assert_eq!(run(module, &stack, &registers).1, End::Root);
}

#[test]
fn a_signal_frame_yields_where_it_struck() {
    // The trampoline's registers are in memory: rip at rsp+24, rsp at rsp+32. The signal struck at a function's first
    // instruction.
    let mut section = Frames::default();
    let signal = section.cie("zRS", &[0], &[]);
    let restore = [0x0f, 3, 0x77, 32, 0x06, 0x10, 16, 2, 0x77, 24, 0x10, 7, 2, 0x77, 32];
    let usual = section.cie("zR", &[0], USUAL);
    section.fde(signal, &absolute(FUNCTION + 0x100, 0x100), Some(&[]), &restore);
    section.fde(usual, &absolute(FUNCTION + 0x200, 0x100), Some(&[]), &[]);
    section.fde(usual, &absolute(FUNCTION, 0x100), Some(&[]), &[]);
    // The trampoline's frame is above the handler's return address.
    let frame = |offset: u64| 1 + offset / 8;
    let registers = [(frame(24), CODE + 0x200), (frame(32), STACK + 80)];
    let stack = Stack::new(&[&[(0, CODE + 0x101), (10, CODE + 0x280)], &registers[..]].concat());
    let (frames, end) = run(section.module(), &stack, &start(CODE));
    assert_eq!(pcs(&frames), [CODE, CODE + 0x101, CODE + 0x200, CODE + 0x280]);
    assert_eq!(frames.iter().map(|frame| frame.is_return).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(end, End::Root);
}

#[test]
fn frame_pointers_where_rules_are_missing() {
    let mut registers = start(JIT);
    registers.set(6, STACK + 16);
    // Two frames of JIT code, then code with rules.
    let stack = Stack::new(&[(2, STACK + 48), (3, JIT + 9), (6, 0), (7, CODE + 1)]);
    let (frames, end) = run(plain(), &stack, &registers);
    assert_eq!(pcs(&frames), [JIT, JIT + 9, CODE + 1]);
    assert!(frames[1..].iter().all(|frame| frame.found == Method::FramePointer));
    assert_eq!(end, End::Root);
    // In a recursion, the same return address repeats.
    let stack =
        Stack::new(&[(2, STACK + 48), (3, JIT + 9), (6, STACK + 80), (7, JIT + 9), (10, 0), (11, CODE + 1)]);
    let (frames, end) = run(plain(), &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![JIT, JIT + 9, JIT + 9, CODE + 1], End::Root));
    // A frame pointer that leads to an address that is not code is rejected.
    let stack = Stack::new(&[(2, STACK + 48), (3, 0x4242), (4, 1)]);
    assert_eq!(run(plain(), &stack, &registers).1, End::NoUnwindInfo);
    // So is one that leads to zeros, unless both words indicate the outermost frame.
    assert_eq!(run(plain(), &Stack::new(&[(0, 9), (2, STACK + 48)]), &registers).1, End::NoUnwindInfo);
    assert_eq!(run(plain(), &Stack::new(&[(0, 9)]), &registers).1, End::Root);
    // A frame pointer beyond the copy may be right, but not one beyond any stack.
    registers.set(6, STACK + 4096);
    assert_eq!(run(plain(), &Stack::new(&[(0, 9)]), &registers).1, End::BeyondCopy);
    registers.set(6, STACK + (1 << 40));
    assert_eq!(run(plain(), &Stack::new(&[(0, 9)]), &registers).1, End::NoUnwindInfo);
    // A frame pointer that leads down is rejected.
    registers.set(6, STACK - 16);
    assert_eq!(run(plain(), &stack, &registers).1, End::NoUnwindInfo);
}

#[test]
fn a_chain_of_frame_pointers_ends_with_zero() {
    let mut registers = start(JIT);
    registers.set(6, STACK + 16);
    let stack = Stack::new(&[(2, STACK + 48), (3, JIT + 9), (6, 0), (7, JIT + 0x30), (8, 5)]);
    let chained = Chained(Process(plain()));
    let (frames, end) = run_in(&chained, &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![JIT, JIT + 9, JIT + 0x30], End::Root));
    // Java's code uses the register for anything, so by default a zero is not an end.
    assert_eq!(run(plain(), &stack, &registers), (frames, End::NoUnwindInfo));
    // A zero register does not count as a chain, and neither does a chain with another end.
    registers.set(6, 0);
    assert_eq!(run_in(&chained, &Stack::new(&[(0, 1), (1, 2)]), &registers).1, End::NoUnwindInfo);
    registers.set(6, STACK + 16);
    let stack = Stack::new(&[(2, STACK + 48), (3, JIT + 9), (6, 7), (7, JIT + 0x30), (8, 5)]);
    assert_eq!(run_in(&chained, &stack, &registers).1, End::NoUnwindInfo);
}

#[test]
fn a_stub_without_rules_has_its_return_address_on_top() {
    let mut registers = start(CODE + LENGTH + 4);
    registers.set(7, STACK + 8);
    let stack = Stack::new(&[(1, CODE + 1)]);
    let (frames, end) = run(plain(), &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![CODE + LENGTH + 4, CODE + 1], End::Root));
    // A call through a bad pointer behaves likewise.
    registers.set(16, 0x10);
    let (frames, end) = run(plain(), &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![0x10, CODE + 1], End::Root));
}

#[test]
fn what_was_left_on_the_stack_is_no_caller_of_jit_code() {
    let mut registers = start(JIT + 4);
    registers.set(7, STACK + 8);
    registers.set(6, 1);
    // A word left by an earlier call. The caller that its rules give shows that.
    let stack = Stack::new(&[(1, CODE + 1), (2, 0x1234), (3, 0x5678)]);
    let (frames, end) = run(plain(), &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![JIT + 4], End::NoUnwindInfo));
}

#[test]
fn a_guess_is_not_tested_by_guesses() {
    // The word above the top leads to a signal handler's frame, which leads back to where the guess was made.
    let mut section = Frames::default();
    let signal = section.cie("zRS", &[0], &[]);
    let restore = [0x0f, 3, 0x77, 32, 0x06, 0x10, 16, 2, 0x77, 24, 0x10, 7, 2, 0x77, 32];
    section.fde(signal, &absolute(FUNCTION + 0x100, 0x100), Some(&[]), &restore);
    let mut registers = start(JIT + 4);
    registers.set(6, 1);
    let stack = Stack::new(&[(1, CODE + 0x101), (5, JIT + 4), (6, STACK)]);
    let (frames, end) = run(section.module(), &stack, &registers);
    assert_eq!((pcs(&frames), end), (vec![JIT + 4], End::NoUnwindInfo));
}

/// The stack of a process whose code can be read.
struct WithCode<'a>(Stack, u64, &'a [u8]);

impl Memory for WithCode<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.0.read_u64(at)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let Some(offset) = at.0.checked_sub(self.1) else { return false };
        let code = self.2.get(offset as usize..).and_then(|rest| rest.get(..to.len()));
        code.map(|code| to.copy_from_slice(code)).is_some()
    }
}

#[test]
fn a_frame_pointer_that_leads_to_no_call_is_none() {
    let mut registers = start(JIT + 4);
    registers.set(6, STACK + 32);
    let callers = |code: &[u8]| {
        let stack = Stack::new(&[(4, STACK + 48), (5, CODE + 8), (6, 0), (7, CODE + 8), (9, 0)]);
        let (mut frames, mut memory) = (Vec::new(), WithCode(stack, CODE, code));
        let end = walk(&Process(plain()), &mut memory, &mut Cache::default(), &registers, 100, &mut frames);
        (frames.len(), end)
    };
    assert_eq!(callers(&[0x90; 16]), (1, End::NoUnwindInfo));
    assert!(callers(&[0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0x90]).0 > 1);
}

#[test]
fn code_says_where_a_frame_is_being_made() {
    let registers = |offset| {
        let mut registers = start(JIT + offset);
        registers.set(6, STACK + 32);
        registers
    };
    // The caller is JIT code too, with its frame at the fourth word.
    let stack = |above: &[(u64, u64)]| {
        Stack::new(&[above, &[(4, STACK + 48), (5, JIT + 0x99), (6, 0), (7, CODE + 1)]].concat())
    };
    let callers = |stack: Stack, code: &[u8], offset: u64| {
        let mut frames = Vec::new();
        let mut memory = WithCode(stack, JIT, code);
        let process = Process(plain());
        let end = walk(&process, &mut memory, &mut Cache::default(), &registers(offset), 100, &mut frames);
        assert_eq!(end, End::Root);
        pcs(&frames)[1..].to_vec()
    };
    let entered = || stack(&[(0, JIT + 0x50)]);
    let pushed = || stack(&[(0, STACK + 32), (1, JIT + 0x50)]);
    let all = [JIT + 0x50, JIT + 0x99, CODE + 1];
    let prologue = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5];
    for offset in [0, 4] {
        assert_eq!(callers(entered(), &prologue, offset), all, "before the push");
    }
    assert_eq!(callers(pushed(), &prologue, 5), all, "after it");
    for code in [&[0xc3][..], &[0xf3, 0xc3], &[0xc2, 8, 0], &[0xc5, 0xf8, 0x77, 0xc3]] {
        assert_eq!(callers(entered(), code, 0), all, "{code:x?}");
    }
    // After `leave`, as Erlang's compiler writes it: dec %r14; jl; ret. And a jump to the start of a function, over
    // another one.
    let end = [0xc9, 0x49, 0xff, 0xce, 0x0f, 0x8c, 0, 1, 0, 0, 0xc3];
    for offset in [1, 4, 10] {
        assert_eq!(callers(entered(), &end, offset), all, "{offset} bytes in");
    }
    let mut jumps = [0x90; 32];
    jumps[..6].copy_from_slice(&[0xc9, 0xe9, 2, 0, 0, 0]);
    jumps[8..10].copy_from_slice(&[0xeb, 0x06]);
    jumps[16..20].copy_from_slice(&[0x55, 0x48, 0x8b, 0xec]);
    for offset in [1, 8, 16] {
        assert_eq!(callers(entered(), &jumps, offset), all, "{offset} bytes in");
    }
    // Jumps in a circle, jumps to other code, and code before `leave`.
    for (code, offset) in [(&[0xeb, 0xfe][..], 0), (&[0xeb, 0x00, 0x90, 0xc3], 0), (&end, 0)] {
        assert_eq!(callers(entered(), code, offset), all[1..], "{code:x?}");
    }
    // Otherwise the frame pointer is right, even if the move does not follow a push, or the push has no move after
    // it.
    for (code, offset) in [(&[0x90, 0x90][..], 0), (&prologue[..7], 4), (&[0x53, 0x48, 0x89, 0xe5], 1)] {
        assert_eq!(callers(entered(), code, offset), all[1..], "{code:x?}");
    }
    // A word that is not a code address cannot be a return address.
    assert_eq!(callers(stack(&[(0, 0x1234)]), &[0xc3], 0), all[1..]);
}

#[test]
fn a_process_begins_on_the_stack_that_the_kernel_made() {
    // argc 2, argv, NULL, one variable, NULL.
    let strings = STACK + 8 * 20;
    let stack = Stack::new(&[(0, 2), (1, strings), (2, strings + 5), (4, strings + 9)]);
    assert_eq!(run(plain(), &stack, &start(CODE + LENGTH + 4)).1, End::Root);
    let stack = Stack::new(&[(0, 2), (1, strings), (2, 5), (4, strings + 9)]);
    assert_eq!(run(plain(), &stack, &start(CODE + LENGTH + 4)).1, End::NoUnwindInfo);
}

#[test]
fn the_cache_forgets_what_is_mapped_anew() {
    let mut cache = Cache::default();
    let mut frames = Vec::new();
    let stack = Stack::new(&[(0, CODE + 0x30), (1, CODE + 0x20)]);
    let mut go = |module: &Process, cache: &mut Cache| {
        walk(module, &mut stack.clone(), cache, &start(CODE), 2, &mut frames);
        frames[1].pc.0
    };
    let (old, new) = (Process(plain()), Process(one_function("zR", USUAL, &[])));
    assert_eq!(go(&old, &mut cache), CODE + 0x20);
    assert_eq!(go(&new, &mut cache), CODE + 0x20, "remembered");
    cache.invalidate(Avma(CODE + 1)..Avma(CODE + 0x1000));
    assert_eq!(go(&new, &mut cache), CODE + 0x20, "another range");
    cache.invalidate(Avma(CODE)..Avma(CODE + 1));
    assert_eq!(go(&new, &mut cache), CODE + 0x30);
    cache.clear();
    assert_eq!(go(&old, &mut cache), CODE + 0x20);
}

#[test]
fn the_cache_grows_and_stays_right() {
    // A separate row, with another CFA, for every address.
    let mut instructions = Vec::new();
    for step in 0..2000u32 {
        instructions.extend([0x0e, (8 + 8 * (step % 10)) as u8, 0x41]);
    }
    let process = Process(one_function("zR", USUAL, &instructions));
    let stack = Stack::new(&(0..64).map(|word| (word, 0x100 + word)).collect::<Vec<_>>());
    let mut cache = Cache::default();
    let mut frames = Vec::new();
    for _ in 0..2 {
        for step in 0..2000 {
            walk(&process, &mut stack.clone(), &mut cache, &start(CODE + step), 2, &mut frames);
            assert_eq!(frames[1].pc.0, 0x100 + step % 10, "{step}");
        }
    }
}

#[test]
fn a_table_is_asked_for_callers_alone() {
    // The table is another file's, so that results from it can be recognized.
    let table = Table::by_length(&one_function("zR", USUAL, &[0x0e, 32])).expect("a function with rules");
    let stack = Stack::new(&[(1, CODE + 0x10), (3, CODE + 0x18), (5, CODE + 0x20)]);
    let (frames, end) = run(plain().with_table(table), &stack, &start(CODE));
    assert_eq!(end, End::Root);
    assert_eq!(pcs(&frames), [CODE, CODE + 0x10, CODE + 0x20]);
    assert_eq!(pcs(&run(plain(), &stack, &start(CODE)).0), [CODE, CODE + 0x10, CODE + 0x18, CODE + 0x20]);
}
