//! Checks that walks do not allocate, by counting calls of the allocator.

mod bytes;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{FUNCTION, Frames, LENGTH, USUAL, absolute};
use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Located, Memory, Method, Module, ReadError, Registers, Walked, Window, walk,
};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator that counts; the system's does the work")]
// SAFETY: each call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promises are the ones that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc`, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STACK: u64 = 0x7ffd_0000_0000;
/// Functions of the module, each `LENGTH` long: usual rules (at `FUNCTION`), rules by the frame pointer, an
/// expression, no rules.
const BY_FP: u64 = FUNCTION + LENGTH;
const ODD: u64 = FUNCTION + 2 * LENGTH;
const BARE: u64 = FUNCTION + 3 * LENGTH;

struct Process(Module<Vec<u8>>);

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 {
            FUNCTION..0x41_0000 => Located::Module { module: &self.0, bias: 0 },
            _ => Located::Unmapped,
        }
    }
}

/// Code in which every instruction is a call that can lead anywhere.
struct Text;

impl ReadCode for Text {
    fn read(&mut self, _at: Avma, to: &mut [u8]) -> bool {
        to.fill(0x90);
        if let [.., a, b] = to {
            (*a, *b) = (0xff, 0xd0);
        }
        true
    }
}

struct Words<'a> {
    words: &'a [u64],
    at_hand: bool,
}

impl Memory for Words<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let index = at.0.checked_sub(STACK).ok_or(ReadError::Unreadable)? / 8;
        self.words.get(index as usize).copied().ok_or(ReadError::BeyondCopy)
    }

    fn window(&self) -> Option<Window<'_>> {
        self.at_hand.then_some(Window { base: Avma(STACK), words: self.words })
    }
}

fn process() -> Process {
    let mut frames = Frames::default();
    let cie = frames.cie("zR", &[0], USUAL);
    frames.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[]), &[0x0e, 16]);
    frames.fde(cie, &absolute(BY_FP, LENGTH), Some(&[]), &[0x0c, 6, 16, 0x80 | 6, 2]);
    // The CFA is 16 bytes above the stack pointer, given by an expression.
    frames.fde(cie, &absolute(ODD, LENGTH), Some(&[]), &[0x0f, 2, 0x77, 16]);
    Process(frames.module())
}

/// Words of a stack with several frames of each kind. The innermost function is given by the test.
fn stack() -> Vec<u64> {
    let mut words = Vec::new();
    for round in 0..8 {
        for function in [FUNCTION, ODD, FUNCTION + 0x100, ODD + 0x80] {
            words.extend([round, function + 0x10 + round]);
        }
    }
    // The frame pointer leads to the last frames.
    let base = STACK + 8 * words.len() as u64;
    words.extend([0, BY_FP + 0x20, base + 32, BY_FP + 0x30, 0, 0]);
    words
}

fn count<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = COUNT.get();
    let result = work();
    (COUNT.get() - before, result)
}

#[test]
fn walking_allocates_nothing() {
    let (process, words) = (process(), stack());
    let mut start = Registers::new(FUNCTION + 5, STACK);
    start.set(6, STACK + 8 * (words.len() as u64 - 4));
    let mut frames = Vec::with_capacity(100);
    for at_hand in [false, true] {
        let mut memory = Words { words: &words, at_hand };
        let mut fixed = Cache::fixed(9);
        // The index of a section without a table is built by the first lookup.
        let _ = process.0.row(plumb_unwind::Svma(FUNCTION));
        for time in ["first", "second"] {
            let (made, end) = count(|| walk(&process, &mut memory, &mut fixed, &start, 100, &mut frames));
            assert_eq!((made, end), (0, End::Root), "{time} walk with a fixed cache, at hand: {at_hand}");
            assert!(frames.len() > 32, "{frames:?}");
        }
        let mut cache = Cache::default();
        let (made, _) = count(|| {
            (0..3).map(|_| walk(&process, &mut memory, &mut cache, &start, 100, &mut frames)).last()
        });
        assert!(made > 0, "a cache that grows is counted");
        let (made, end) = count(|| walk(&process, &mut memory, &mut cache, &start, 100, &mut frames));
        assert_eq!((made, end), (0, End::Root), "nothing new to remember, at hand: {at_hand}");
    }
}

#[test]
fn scanning_allocates_nothing() {
    let (process, mut words) = (process(), vec![1, 2, 3, 4]);
    words.extend(stack());
    let start = Registers::new(BARE + 0x10, STACK);
    let (mut cache, mut frames) = (Cache::fixed(9), Vec::with_capacity(100));
    let _ = process.0.row(plumb_unwind::Svma(FUNCTION));
    let mut memory = Words { words: &words, at_hand: false };
    let (made, _) =
        count(|| scan::walk(&process, &mut Text, &mut memory, &mut cache, &start, 100, &mut frames));
    assert_eq!(made, 0);
    assert!(frames.iter().any(|frame: &Walked| frame.found == Method::Scan), "{frames:?}");
}
