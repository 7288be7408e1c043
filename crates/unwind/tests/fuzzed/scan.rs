//! Scans over generated programs with generated code: work is bounded, results are repeatable, and slots are in the
//! stack.

use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{Avma, Cache, Method, Module, Registers, Section, Sections, Svma};

use super::program::{self, CODE, SIZE, TABLE};
use super::{LIMIT, Process, STACK, Source, Words};

/// Code from [`CODE`] on: these bytes, repeated endlessly.
pub struct Text<'a>(pub &'a [u8]);

impl ReadCode for Text<'_> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        if self.0.is_empty() || at.0 < CODE {
            return false;
        }
        for (index, byte) in to.iter_mut().enumerate() {
            *byte = self.0[((at.0 - CODE) as usize + index) % self.0.len()];
        }
        true
    }
}

/// Generates a program and scans from several starting points. Returns the number of frames that scans found.
pub fn run(data: &[u8]) -> usize {
    let mut source = Source(data);
    let program = program::make(&mut source);
    // Some bytes are calls, to near addresses or through registers.
    let mut text = Vec::new();
    for _ in 0..source.below(64) {
        match source.below(4) {
            0 => text.extend([0xff, 0xd0 | source.byte() & 7]),
            1 => text.push(source.byte()),
            2 => text.extend([0xe9, source.byte(), 0, 0, 0]),
            _ => text.extend([0xe8, source.byte(), source.below(3).wrapping_sub(1), 0xff, 0xff]),
        }
    }
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let process = Process(Module::new(Sections {
        eh_frame: section(program::frames_at(), &*program.eh_frame),
        eh_frame_hdr: section(TABLE, &*program.eh_frame_hdr).filter(|_| source.below(4) != 0),
        ..Sections::default()
    }));
    let mut count = 0;
    for _ in 0..2 {
        let pc = CODE + u64::from(source.byte()) * 9 % (program.functions * SIZE + 0x200);
        let mut start = Registers::new(pc, STACK + u64::from(source.below(8)) * 8);
        start.set(6, STACK + u64::from(source.byte()) * 8);
        let scanned = |cache: &mut Cache| {
            let (mut stack, mut frames) = (Words::new(&program.words), Vec::new());
            let end = scan::walk(&process, &mut Text(&text), &mut stack, cache, &start, LIMIT, &mut frames);
            assert!(!frames.is_empty() && frames.len() <= LIMIT, "{} frames", frames.len());
            assert!(stack.reads.get() <= 10 * LIMIT * 17 * 512, "{} reads", stack.reads.get());
            let inside = |slot: u64| slot == 0 || (STACK..stack.end()).contains(&slot);
            assert!(frames.iter().all(|frame| inside(frame.slot.0)), "{frames:?}");
            (frames, end)
        };
        let mut cache = Cache::default();
        let first = scanned(&mut cache);
        assert_eq!(first, scanned(&mut cache), "scanned again");
        count += first.0.iter().filter(|frame| frame.found == Method::Scan).count();
    }
    count
}
