//! Scans of handwritten stacks: which words are accepted.

mod bytes;

use bytes::{FUNCTION, Frames, LENGTH, USUAL, absolute};
use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Located, Memory, Method, Module, ReadError, Registers, Trust, Walked, trust,
};

/// Start of code without rules in the module. Functions with rules are at [`FUNCTION`] and [`WITH_RULES`].
const BARE: u64 = FUNCTION + LENGTH;
const WITH_RULES: u64 = FUNCTION + 0x1_0000;
/// Function with rules whose frame has six words, including the return address.
const LARGE: u64 = WITH_RULES + 0x200;
const END: u64 = WITH_RULES + 0x1000;
/// Code that is not in a file.
const MADE: u64 = END + 0x1_0000;
const STACK: u64 = 0x7ffd_0000_0000;

struct Process {
    module: Module<Vec<u8>>,
    text: Vec<u8>,
}

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        if (FUNCTION..END).contains(&pc.0) {
            Located::Module { module: &self.module, bias: 0 }
        } else if (MADE..MADE + 0x1000).contains(&pc.0) {
            Located::NoInfo
        } else {
            Located::Unmapped
        }
    }
}

struct Text<'a>(&'a [u8]);

impl ReadCode for Text<'_> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let from = at.0.checked_sub(FUNCTION).and_then(|at| self.0.get(at as usize..)?.get(..to.len()));
        from.is_some_and(|from| {
            to.copy_from_slice(from);
            true
        })
    }
}

struct Words<'a>(&'a [u64]);

impl Memory for Words<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let index = at.0.checked_sub(STACK).ok_or(ReadError::Unreadable)? / 8;
        self.0.get(index as usize).copied().ok_or(ReadError::BeyondCopy)
    }
}

/// Memory from which code can be read too.
struct WithText<'a>(Words<'a>, Text<'a>);

impl Memory for WithText<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.0.read_u64(at)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.1.read(at, to)
    }
}

impl Process {
    fn new() -> Self {
        let mut frames = Frames::default();
        let cie = frames.cie("zR", &[0], USUAL);
        // The frame has one word below the return address.
        frames.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[]), &[0x0e, 16]);
        frames.fde(cie, &absolute(WITH_RULES, 0x100), Some(&[]), &[0x0e, 16]);
        frames.fde(cie, &absolute(LARGE, 0x100), Some(&[]), &[0x0e, 48]);
        Process { module: frames.module(), text: vec![0x90; (END - FUNCTION) as usize] }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let at = (at - FUNCTION) as usize;
        self.text[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes a direct call that returns to `back`.
    fn call(&mut self, back: u64, target: u64) {
        self.put(back - 5, &[0xe8]);
        self.put(back - 4, &(target.wrapping_sub(back) as u32).to_le_bytes());
    }

    fn run(&self, pc: u64, words: &[u64]) -> (Vec<Walked>, End) {
        let mut frames = Vec::new();
        let start = Registers::new(pc, STACK);
        let (mut text, mut cache) = (Text(&self.text), Cache::default());
        let end = scan::walk(self, &mut text, &mut Words(words), &mut cache, &start, 100, &mut frames);
        (frames, end)
    }
}

impl Process {
    /// Runs a checked scan. Returns the addresses and the end, and asserts how the first caller was found.
    fn checked(&self, pc: u64, words: &[u64]) -> (Vec<u64>, End) {
        let mut frames = Vec::new();
        let (start, mut cache) = (Registers::new(pc, STACK), Cache::default());
        let mut memory = WithText(Words(words), Text(&self.text));
        let end = plumb_unwind::walk(self, &mut memory, &mut cache, &start, 100, &mut frames);
        let with: (_, &mut dyn ReadCode, _, _) = (self, &mut Text(&self.text), &mut memory, &mut cache);
        let end = scan::resume(true, with, &start, end, 100, &mut frames);
        let is_scanned = |caller: &Walked| {
            matches!(caller.found, Method::Scan | Method::FramePointer) || end == End::NotMapped
        };
        assert!(frames.get(1).is_none_or(is_scanned));
        (pcs(&frames), end)
    }
}

fn pcs(frames: &[Walked]) -> Vec<u64> {
    frames.iter().map(|frame| frame.pc.0).collect()
}

#[test]
fn the_first_word_after_a_call_that_leads_here() {
    let mut process = Process::new();
    let (here, caller, outer) = (BARE + 0x110, FUNCTION + 0x50, WITH_RULES + 0x30);
    process.call(caller, BARE + 0x100);
    process.call(outer, FUNCTION);
    // Words that cannot be return addresses: data, code without a call, a call of something else.
    process.call(FUNCTION + 0x80, WITH_RULES);
    let words = [7, STACK, FUNCTION + 0x20, FUNCTION + 0x80, 5, caller, 3, outer, 1, 0];
    let (frames, end) = process.run(here, &words);
    assert_eq!((pcs(&frames), end), (vec![here, caller, outer], End::Root));
    assert_eq!((frames[1].found, frames[1].slot), (Method::Scan, Avma(STACK + 40)));
    assert_eq!(frames[2].found, Method::Cfi);
    assert!(trust(&frames).eq([Trust::Certain, Trust::Guessed, Trust::Guessed]));
    // A plain walk does not scan.
    let mut frames = Vec::new();
    let start = Registers::new(here, STACK);
    let end =
        plumb_unwind::walk(&process, &mut Words(&words), &mut Cache::default(), &start, 100, &mut frames);
    assert_eq!((pcs(&frames), end), (vec![here], End::NoUnwindInfo));
}

#[test]
fn calls_around_tell_where_functions_begin() {
    let mut process = Process::new();
    let (here, stale, caller) = (BARE + 0x210, FUNCTION + 0x50, FUNCTION + 0x70);
    process.call(stale, BARE + 0x100);
    process.call(caller, BARE + 0x200);
    let words = [1, 2, stale, 3, caller, 4, 0];
    assert_eq!(pcs(&process.run(here, &words).0), [here, caller], "code at 0x200 is called somewhere");
    // Without the call, the start of the function is unknown.
    process.put(caller - 5, &[0x90, 0x90, 0x90, 0xff, 0xd0]);
    assert_eq!(pcs(&process.run(here, &[1, 2, caller, 3, 0]).0), [here, caller], "a call through rax");
}

#[test]
fn stubs_that_jump_on_are_followed() {
    let mut process = Process::new();
    let (here, caller) = (BARE + 0x210, FUNCTION + 0x50);
    process.call(caller, BARE + 0x400);
    let words = [1, 2, caller, 3, 0];
    assert_eq!(pcs(&process.run(here, &words).0), [here], "it calls what is behind");
    process.put(BARE + 0x400, &[0xeb, 0xfe]);
    assert_eq!(pcs(&process.run(here, &words).0), [here], "it jumps to itself");
    process.put(BARE + 0x400, &[0xe9, 0xfb, 0xfd, 0xff, 0xff]);
    assert_eq!(pcs(&process.run(here, &words).0), [here, caller]);
    process.put(BARE + 0x400, &[0xff, 0x25, 0, 0, 0, 0]);
    assert_eq!(pcs(&process.run(here, &words).0), [here, caller], "an imported function");
}

#[test]
fn what_rules_lead_to_must_have_called_too() {
    let mut process = Process::new();
    let (here, caller) = (BARE + 0x110, FUNCTION + 0x50);
    process.call(caller, BARE + 0x100);
    let stale = [9, 9, caller, 0, WITH_RULES + 0x30];
    assert_eq!(pcs(&process.run(here, &stale).0), [here], "its caller did not call");
    process.call(WITH_RULES + 0x30, BARE);
    assert_eq!(pcs(&process.run(here, &stale).0), [here], "nor this function");
    process.call(WITH_RULES + 0x30, FUNCTION);
    let (frames, end) = process.run(here, &stale);
    assert_eq!(pcs(&frames), [here, caller, WITH_RULES + 0x30]);
    assert_eq!(end, End::BeyondCopy);
}

#[test]
fn there_is_nothing_at_the_end_of_the_address_space() {
    let process = Process::new();
    for sp in [u64::MAX, u64::MAX - 7, u64::MAX - 8, 0] {
        let (mut text, mut cache, mut frames) = (Text(&process.text), Cache::default(), Vec::new());
        let start = Registers::new(BARE + 0x10, sp);
        let end = scan::walk(&process, &mut text, &mut Words(&[]), &mut cache, &start, 9, &mut frames);
        assert_eq!((pcs(&frames), end), (vec![BARE + 0x10], End::NoUnwindInfo), "{sp:#x}");
    }
}

#[test]
fn a_caller_that_was_called_through_a_pointer_needs_a_caller_itself() {
    let mut process = Process::new();
    let (here, caller, outer) = (BARE + 0x110, BARE + 0x300, FUNCTION + 0x50);
    process.put(caller - 2, &[0xff, 0xd0]);
    process.call(outer, BARE + 0x280);
    let words = [1, 2, caller, 3, outer, 4, 0];
    assert_eq!(process.checked(here, &words), (vec![here, caller, outer], End::Root));
    // The return address follows a call of something else.
    process.call(outer, WITH_RULES);
    assert_eq!(process.checked(here, &words), (vec![here], End::NoUnwindInfo));
}

#[test]
fn code_in_no_file_is_not_scanned_for_what_has_entered_it() {
    let mut process = Process::new();
    let (here, caller, outer) = (MADE + 0x10, FUNCTION + 0x50, WITH_RULES + 0x30);
    process.call(outer, FUNCTION);
    process.call(caller, WITH_RULES + 0x80);
    // Left by an earlier call; they lead to the root just like the true caller.
    let words = [7, STACK, 5, 6, caller, 3, outer, 1, 0];
    assert_eq!(process.checked(here, &words), (vec![here], End::NoUnwindInfo));
}

#[test]
fn code_in_no_file_was_entered_by_who_can_have_done_so() {
    let mut process = Process::new();
    let here = MADE + 0x10;
    let (pointer, direct) = (FUNCTION + 0x50, FUNCTION + 0x80);
    process.put(pointer - 2, &[0xff, 0xd0]);
    process.call(direct, LARGE);
    let outer: Vec<u64> = (1..5).map(|index| WITH_RULES + 0x10 * index).collect();
    outer.iter().for_each(|&outer| process.put(outer - 2, &[0xff, 0xd0]));
    let rest = || outer.iter().flat_map(|&outer| [7, outer]).chain([7, 0]);
    let after = |words: &[u64]| words.iter().copied().chain(rest()).collect::<Vec<_>>();
    let whole = |caller| [here, caller].into_iter().chain(outer.iter().copied()).collect::<Vec<_>>();
    // Called through a pointer, and no earlier word leads to the root.
    assert_eq!(process.checked(here, &after(&[7, 5, direct, 3, 0, pointer])), (whole(pointer), End::Root));
    // In the frame of the function that was called; its rules give the frame's size.
    assert_eq!(process.checked(here, &after(&[7, 6, 5, 4, 3, direct])), (whole(direct), End::Root));
    // Either word may have been left by an earlier call.
    let nothing = (vec![here], End::NoUnwindInfo);
    assert_eq!(process.checked(here, &after(&[7, 5, direct])), nothing);
    assert_eq!(process.checked(here, &after(&[7, 5, direct, 3, pointer])), nothing);
    // There may be frames of such code in between.
    assert_eq!(process.checked(here, &after(&[7, MADE + 0x80, 5, pointer])), nothing);
}

#[test]
fn parts_of_larger_code_that_call_each_other_have_one_word_more_than_rules_know() {
    let mut process = Process::new();
    let (here, back, caller) = (LARGE + 0x60, LARGE + 0x90, FUNCTION + 0x50);
    process.call(caller, LARGE);
    for bogus in [0, END + 0x100] {
        // By the rules the return address is the sixth word, but it is the seventh.
        let words = [back, 5, 4, 3, 2, bogus, caller, 7, 0];
        process.call(back, LARGE + 0x50);
        let found = process.checked(here, &words);
        assert_eq!(found, (vec![here, back, caller], End::Root), "{bogus}");
        // The call leads elsewhere: to the start of the code, which has a frame of its own, or beyond the program
        // counter. The one further out leads here.
        for target in [LARGE, LARGE + 0x70, WITH_RULES] {
            process.call(back, target);
            assert_eq!(process.checked(here, &words), (vec![here, caller], End::Root), "{bogus}");
        }
        // No call does. A return address outside all code does not become a frame.
        process.call(caller, WITH_RULES);
        let end = if bogus == 0 { End::Root } else { End::NotMapped };
        assert_eq!(process.checked(here, &words), (vec![here], end));
        process.call(caller, LARGE);
    }
}

/// By the rules, which hold in the middle of the code, the return address is the sixth word.
#[test]
fn prologues_and_epilogues_without_rules_of_their_own_show_what_is_on_the_stack() {
    let mut process = Process::new();
    let (here, caller) = (LARGE + 0x60, FUNCTION + 0x50);
    // Called through a pointer.
    process.put(caller - 2, &[0xff, 0xd0]);
    let codes: [(&[u8], &[u64]); 4] = [
        // push %rbp; push %rbx; push %r15; sub $0x10,%rsp; mov $5,%ebx
        (&[0x55, 0x53, 0x41, 0x57, 0x48, 0x83, 0xec, 0x10, 0xbb, 5, 0, 0, 0], &[caller, 7, 0]),
        (&[0x41, 0x57, 0x48, 0x83, 0xec, 0x10, 0xbb, 5, 0, 0, 0], &[1, 2, caller, 7, 0]),
        // pop %rbx; pop %rbp; ret
        (&[0x5b, 0x5d, 0xc3], &[1, 2, caller, 7, 0]),
        (&[0xc3], &[caller, 7, 0]),
    ];
    for (code, words) in codes {
        for bogus in [0, END + 0x100] {
            process.put(here, &[0xcc; 16]);
            process.put(here, code);
            let mut words = words.to_vec();
            words.resize(7, 3);
            words[5] = bogus;
            assert_eq!(process.checked(here, &words).0[..2], [here, caller], "{code:x?}");
            // Some other instruction comes first: nothing is known.
            process.put(here, &[0x90]);
            assert_eq!(process.checked(here, &words).0, [here], "{code:x?}");
        }
    }
}

#[test]
fn what_an_earlier_call_has_left_is_passed_over_for_what_leads_to_the_root() {
    let mut process = Process::new();
    let (left, caller) = (FUNCTION + 0x40, FUNCTION + 0x80);
    // Calls through a register, which may have led anywhere.
    process.put(left - 2, &[0xff, 0xd0]);
    process.put(caller - 2, &[0xff, 0xd0]);
    let outer: Vec<u64> = (1..5).map(|index| WITH_RULES + 0x10 * index).collect();
    outer.iter().for_each(|&outer| process.put(outer - 2, &[0xff, 0xd0]));
    // From the leftover word, rules lead to a zero or to an address that is not code; from the other word, they lead
    // to the root.
    let mut words = vec![left, 7, 0, left, 7, 3, caller];
    words.extend(outer.iter().flat_map(|&outer| [7, outer]));
    words.extend([7, 0]);
    let mut expected = vec![MADE, caller];
    expected.extend(&outer);
    let (frames, end) = process.run(MADE, &words);
    assert_eq!((pcs(&frames), end), (expected, End::Root));
    // The leftover word is taken for want of a better one: a coroutine's first function may return to zero.
    let (frames, end) = process.run(MADE, &[5, left, 7, 0]);
    assert_eq!((pcs(&frames), end), (vec![MADE, left], End::Root));
}
