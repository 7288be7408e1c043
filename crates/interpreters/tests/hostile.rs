//! Arbitrary memory: reading it terminates, and the results are bounded.

use std::cell::Cell;
use std::fs::File;

use plumb_fixtures::{Requirement, skip};
use plumb_interpreters::{
    CodeId, Detected, FrameLists, FrameSource, Interpreter, Memory, NativeFrame, RuntimeProcess,
    RuntimeState, StackFrames, Threads, find,
};
use plumb_unwind::{Avma, RuntimeFrame};

/// Simulated memory. With `seed` 0 every word points to itself, so that all lists are endless; with 1 every word is negative as a size, so that lists
/// have negative lengths; others are pseudorandom.
struct Odd {
    seed: u64,
    reads: Cell<u64>,
}

impl Memory for Odd {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = at.wrapping_add(index as u64);
            let word = at / 8 * 8;
            let value = match self.seed {
                0 => word,
                1 => 0xffff_ffff_8000_0000,
                seed => (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (seed % 64),
            };
            *byte = value.to_le_bytes()[(at % 8) as usize];
        }
        !at.is_multiple_of(127) || self.seed.is_multiple_of(3)
    }
}

#[test]
fn any_memory_is_read_to_an_end() {
    for (requirement, path) in [
        (Requirement::Python, "/usr/bin/python3.11"),
        (Requirement::Php, "/usr/bin/php8.2"),
        (Requirement::Perl, "/usr/bin/perl"),
        (Requirement::Ruby, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"),
        (Requirement::Node, "/usr/bin/node"),
        (Requirement::Java, "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"),
    ] {
        let Ok(file) = File::open(path) else {
            skip(requirement, format_args!("there is no {path}"));
            continue;
        };
        let Some(Detected::Known(interpreter)) = find(&file, true) else { panic!("it is found in {path}") };
        for seed in 0..40 {
            read_all(&*interpreter, seed);
        }
    }
}

fn read_all(interpreter: &dyn Interpreter, seed: u64) {
    let memory = Odd { seed, reads: Cell::new(0) };
    match interpreter.source() {
        FrameSource::Lists(lists) => read_lists(lists, &memory),
        FrameSource::NativeStack(stack) => read_stack(stack, &memory),
    }
    for at in [0, 0x1000, u64::MAX - 8] {
        // The hash matches only by chance, so reading must fail.
        assert!(interpreter.function(&memory, CodeId { at, identity: 1 }).is_err());
    }
    assert!(memory.reads.get() < 10_000_000, "seed {seed}: {} reads", memory.reads.get());
}

fn read_stack(stack: &dyn StackFrames, memory: &Odd) {
    let mut state = RuntimeState::default();
    let mut process = RuntimeProcess { memory, bias: 0, state: &mut state };
    for at in [0, 8, 0x1000, 0x7fff_ffff_f000, u64::MAX - 8] {
        for has_rules in [false, true] {
            let frame = NativeFrame { pc: at, sp: at.saturating_sub(400), cfa: at, has_rules };
            // Each frame is that of a function only if its words agree with each other.
            let _ = stack.place(&mut process, frame);
        }
        if let Ok(code) = stack.compiled(&mut process, at) {
            assert!(code.range().contains(&at) && stack.has(&mut process, &code));
        }
        let frame = RuntimeFrame { pc: Avma(at), is_return: false, sp: Avma(at), fp: Some(at) };
        let _ = stack.rule(&mut process, frame, &mut |at| memory.word(at).ok());
    }
}

fn read_lists(lists: &dyn FrameLists, memory: &Odd) {
    let states: Vec<u64> = match lists.threads(memory, 0) {
        Ok(Threads::ByDescriptor(states)) => states.into_values().collect(),
        Ok(Threads::Main(state)) => vec![state],
        Err(_) => Vec::new(),
    };
    assert!(states.len() <= 1 << 16);
    for state in states.into_iter().take(3).chain([0, 1, 1000]) {
        if let Ok(frames) = lists.frames(memory, state) {
            assert!(frames.len() <= 1 << 16);
        }
    }
}

#[test]
fn other_files_hold_no_interpreter() {
    let file = File::open("/proc/self/exe").expect("it is there");
    assert!(find(&file, true).is_none());
}
