//! A frame saves the frame pointer, and its rule is evicted by the rules of later frames before the frame pointer is
//! needed.

mod bytes;

use bytes::{FUNCTION, Frames, USUAL, absolute};
use plumb_unwind::{
    Avma, Cache, CodeMap, End, Located, Memory, Module, ReadError, Registers, ReturnSlots, Window, trace,
    walk,
};

const STACK: u64 = 0x7ffd_0000_0000;
const WORDS: usize = 512;
/// Addresses that differ by a multiple of this collide in caches of any size.
const APART: u64 = 1 << 16;
/// Number of functions without a frame pointer, each with a frame of two words.
const PLAIN: u64 = 100;
/// Function that saves the frame pointer, and so has a frame of two words.
const SAVES: u64 = FUNCTION + PLAIN * APART;
/// Function that finds its caller by the frame pointer.
const FRAMED: u64 = SAVES + APART + 0x20;

struct Process(Module<Vec<u8>>);

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 {
            FUNCTION.. => Located::Module { module: &self.0, bias: 0 },
            _ => Located::Unmapped,
        }
    }
}

fn process() -> Process {
    let mut section = Frames::default();
    let cie = section.cie("zR", &[0], USUAL);
    section.fde(cie, &absolute(FUNCTION, PLAIN * APART), Some(&[]), &[0x0e, 16]);
    section.fde(cie, &absolute(SAVES, 0x20), Some(&[]), &[0x0e, 16, 0x86, 2]);
    section.fde(cie, &absolute(FRAMED - 0x10, 0x1000), Some(&[]), &[0x0c, 6, 16, 0x86, 2]);
    Process(section.module())
}

struct Stack {
    words: Vec<u64>,
    is_window: bool,
}

impl Memory for Stack {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let index = at.0.checked_sub(STACK).ok_or(ReadError::Unreadable)? as usize / 8;
        self.words.get(index).copied().ok_or(ReadError::BeyondCopy)
    }

    fn window(&self) -> Option<Window<'_>> {
        self.is_window.then_some(Window { base: Avma(STACK), words: &self.words })
    }
}

/// Returns an address in a plain function that collides with those in `SAVES`.
fn plain(number: u64) -> u64 {
    FUNCTION + (number % PLAIN) * APART + 5
}

/// Returns a stack with `between` plain frames between the frame that saves the frame pointer and the frame that
/// needs it, and its callers.
fn stack(between: u64) -> (Stack, Vec<u64>) {
    let mut words = vec![0; WORDS];
    let mut callers = vec![SAVES + 5];
    callers.extend((0..between).map(plain));
    callers.push(FRAMED);
    for (index, &caller) in callers.iter().enumerate() {
        words[2 * index + 1] = caller;
    }
    // Frame record to which the saved frame pointer leads.
    let frame = 2 * callers.len() + 20;
    words[2] = STACK + 8 * frame as u64;
    words[frame + 1] = plain(7);
    callers.push(plain(7));
    (Stack { words, is_window: false }, callers)
}

#[test]
fn a_frame_pointer_is_found_where_its_saver_is_forgotten() {
    let process = process();
    let mut start = Registers::new(FUNCTION + 1, STACK);
    // The initial frame pointer also leads to a frame, but to the wrong one.
    start.set(6, STACK + 8 * 400);
    for cache in [Cache::default as fn() -> Cache, || Cache::fixed(0), || Cache::fixed(12)] {
        for between in 0..90 {
            let (mut stack, callers) = stack(between);
            stack.words[401] = plain(8);
            let (mut cache, mut frames, mut trail) = (cache(), Vec::new(), ReturnSlots::new(200));
            for is_window in [true, true, false, true] {
                stack.is_window = is_window;
                let end = walk(&process, &mut stack, &mut cache, &start, 200, &mut frames);
                let found: Vec<u64> = frames.iter().skip(1).map(|frame| frame.pc.0).collect();
                assert_eq!((found, end), (callers.clone(), End::Root), "{between} between");
            }
            stack.is_window = true;
            // Clear the cache again for the walk that yields only slots.
            cache.clear();
            for _ in 0..2 {
                let end = trace(&process, &mut stack, &mut cache, &start, &mut trail);
                let mut others = trail.others().iter().map(|&(_, frame)| frame.pc.0);
                let slot = |&slot: &u32| match slot {
                    ReturnSlots::OTHER => others.next().expect("listed whole"),
                    slot => stack.words[slot as usize],
                };
                let found: Vec<u64> = trail.slots().iter().map(slot).collect();
                assert_eq!((found, end), (callers.clone(), End::Root), "{between} between, by places");
            }
        }
    }
}
