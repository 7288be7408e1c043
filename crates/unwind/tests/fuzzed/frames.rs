//! Walks over generated programs: results depend neither on the cache nor on the linker's table, and gimli, which
//! evaluates all registers, finds the same callers.

use plumb_unwind::prefix::{Last, Shared};
use plumb_unwind::{Cache, End, Method, Module, Registers, Section, Sections, Svma, Walked, walk};

use super::program::{self, CODE, Program, SIZE, TABLE};
use super::{LIMIT, Process, STACK, Source, Words};
use crate::reference;

/// Frames and end of a walk.
type Walk = (Vec<Walked>, End);

fn process(program: &Program, with_table: bool) -> Process<'_> {
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let table = section(TABLE, &*program.eh_frame_hdr).filter(|_| with_table);
    Process(Module::new(Sections {
        eh_frame: section(program::frames_at(), &*program.eh_frame),
        eh_frame_hdr: table,
        ..Sections::default()
    }))
}

fn walked(process: &Process<'_>, program: &Program, cache: &mut Cache, start: &Registers) -> Walk {
    walked_in(Words::new(&program.words), process, cache, start)
}

fn walked_in(mut stack: Words<'_>, process: &Process<'_>, cache: &mut Cache, start: &Registers) -> Walk {
    let mut frames = Vec::new();
    let end = walk(process, &mut stack, cache, start, LIMIT, &mut frames);
    assert!(!frames.is_empty() && frames.len() <= LIMIT, "{} frames", frames.len());
    assert!(stack.reads.get() <= 5 * LIMIT * 17 * 512, "{} reads", stack.reads.get());
    let inside = |frame: &Walked| frame.slot.0 == 0 || (STACK..stack.end()).contains(&frame.slot.0);
    assert!(frames.iter().all(inside), "a return address from outside the stack: {frames:?}");
    (frames, end)
}

/// Generates the registers at which a walk begins.
fn start(source: &mut Source<'_>, program: &Program) -> Registers {
    let pc = CODE + u64::from(source.byte()) * 5 % (program.functions * SIZE + 8);
    let mut start = Registers::new(pc, STACK + u64::from(source.below(8)) * 8);
    let length = program.words.len() as u64;
    for register in (0..16).filter(|register| *register != 7) {
        if source.below(8) != 0 {
            start.set(register, program::word(source, program.functions, length));
        }
    }
    start
}

/// Generates a program and walks it from several starting points. Returns the number of frames found.
pub fn run(data: &[u8]) -> usize {
    let mut source = Source(data);
    let program = program::make(&mut source);
    let (with, without) = (process(&program, true), process(&program, false));
    let mut cache = Cache::default();
    let (mut count, mut last) = (0, Last::default());
    for _ in 0..4 {
        let start = start(&mut source, &program);
        let at_hand = || Words::at_hand(&program.words);
        let fast = walked_in(at_hand(), &with, &mut Cache::default(), &start);
        let first = walked(&with, &program, &mut cache, &start);
        assert_eq!(first, fast, "by words at hand");
        assert_eq!(first, walked_in(at_hand(), &with, &mut cache, &start), "by words at hand, again");
        assert_eq!(first, walked(&with, &program, &mut cache, &start), "walked again");
        assert_eq!(first, walked(&with, &program, &mut Cache::default(), &start), "with nothing remembered");
        assert_eq!(first, walked(&without, &program, &mut Cache::default(), &start), "without the table");
        agrees(&with, &program, &start, &first);
        let before = last.frames().to_vec();
        let Shared { kept, new } = last.next(&first.0, first.1);
        assert_eq!(kept + new, first.0.len());
        assert!(
            before.iter().take(kept).eq(first.0.iter().rev().take(kept)),
            "kept frames are the last stack's"
        );
        assert!(first.1 != End::Root || last.frames().iter().rev().eq(&first.0));
        count += first.0.len();
    }
    count
}

/// Compares with gimli up to the end of the shorter result. plumb falls back to conventions if information is missing
/// or implausible, and is stricter about stacks that do not grow.
fn agrees(process: &Process<'_>, program: &Program, start: &Registers, (frames, end): &Walk) {
    let by_rule = |frame: &&Walked| matches!(frame.found, Method::Cfi | Method::Signal);
    let ours: Vec<u64> = frames.iter().skip(1).take_while(by_rule).map(|frame| frame.pc.0).collect();
    let (theirs, their_end) = reference::walk(process, &mut Words::new(&program.words), start, LIMIT - 1);
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    assert!(
        same == ours.len().min(theirs.len()),
        "{ours:x?} then {end:?}, gimli {theirs:x?} then {their_end:?}"
    );
}
