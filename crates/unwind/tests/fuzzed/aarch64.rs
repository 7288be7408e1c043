//! Walks over generated aarch64 programs: rows equal gimli's, results depend neither on the cache nor on the linker's
//! table, and scans are bounded.

use gimli::LittleEndian;
use plumb_unwind::aarch64::{COUNT, PC, Registers, SP, X30};
use plumb_unwind::{
    Avma, Cache, CfaRule, End, Isa, Module, RegisterRule, Section, Sections, Svma, Walked, scan, walk,
};

use super::program::{self, AARCH64, CODE, Program, SIZE, TABLE};
use super::scan::Text;
use super::{LIMIT, Process, STACK, Source, Words};
use crate::gimli_rows;

fn process(program: &Program, with_table: bool) -> Process<'_> {
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    Process(Module::new(Sections {
        eh_frame: section(program::frames_at(), &*program.eh_frame),
        eh_frame_hdr: section(TABLE, &*program.eh_frame_hdr).filter(|_| with_table),
        isa: Isa::Aarch64,
        ..Sections::default()
    }))
}

/// Returns a random word; return addresses may be signed.
fn word(source: &mut Source<'_>, program: &Program) -> u64 {
    let word = program::word(source, program.functions, program.words.len() as u64);
    if source.below(8) == 0 { word | u64::from(source.byte()) << 48 } else { word }
}

fn start(source: &mut Source<'_>, program: &Program) -> Registers {
    let pc = CODE + u64::from(source.byte()) * 4 % (program.functions * SIZE + 8);
    let mut start = Registers::new(pc, STACK + u64::from(source.below(8)) * 16);
    for register in (0..PC).filter(|&register| register != SP) {
        if source.below(8) != 0 {
            start.set(register, word(source, program));
        }
    }
    start
}

/// Generates a program and walks it from several starting points. Returns the number of frames found.
pub fn run(data: &[u8]) -> usize {
    let mut source = Source(data);
    let program = program::make_for(&AARCH64, &mut source);
    let (with, without) = (process(&program, true), process(&program, false));
    rows(&with.0, &program);
    let instructions = usize::from(source.below(64));
    let text = source.take(4 * instructions);
    let mut cache = Cache::default();
    let mut count = 0;
    for _ in 0..4 {
        let start = start(&mut source, &program);
        let checked = |walked: &mut dyn FnMut(&mut Words<'_>, &mut Vec<Walked>) -> End| {
            let (mut stack, mut frames) = (Words::new(&program.words), Vec::new());
            let end = walked(&mut stack, &mut frames);
            assert!(!frames.is_empty() && frames.len() <= LIMIT, "{} frames", frames.len());
            assert!(stack.reads.get() <= 10 * LIMIT * 33 * 512, "{} reads", stack.reads.get());
            let inside = |slot: Avma| slot.0 == 0 || (STACK..stack.end()).contains(&slot.0);
            assert!(frames.iter().all(|frame| inside(frame.slot)), "outside the stack: {frames:?}");
            (frames, end)
        };
        let walked = |process: &Process<'_>, cache: &mut Cache| {
            checked(&mut |stack, frames| walk(process, stack, cache, &start, LIMIT, frames))
        };
        let first = walked(&with, &mut cache);
        assert_eq!(first, walked(&with, &mut cache), "walked again");
        assert_eq!(first, walked(&with, &mut Cache::default()), "with nothing remembered");
        assert_eq!(first, walked(&without, &mut Cache::default()), "without the table");
        let mut scanned = || {
            checked(&mut |stack, frames| {
                scan::walk(&with, &mut Text(text), stack, &mut cache, &start, LIMIT, frames)
            })
        };
        assert_eq!(scanned(), scanned(), "scanned again");
        count += first.0.len();
    }
    count
}

/// Compares rows at every address where both sides find one.
fn rows(module: &Module<&[u8]>, program: &Program) {
    let bases = gimli_rows::bases(module.sections());
    let mut section = gimli::EhFrame::new(&program.eh_frame, LittleEndian);
    section.set_vendor(gimli::Vendor::AArch64);
    let mut context = gimli::UnwindContext::new();
    gimli_rows::each_fde(&section, &bases, |fde| {
        for at in (fde.initial_address()..fde.initial_address() + fde.len()).step_by(4) {
            let theirs = fde.unwind_info_for_address(&section, &bases, &mut context, at);
            let (Ok(Some(ours)), Ok(theirs)) = (module.row(Svma(at)), theirs) else { continue };
            // gimli cannot distinguish `x0` without offset from an undefined CFA.
            let cfa = match gimli_rows::cfa(theirs) {
                CfaRule::Undefined if ours.cfa != CfaRule::Undefined => {
                    CfaRule::Register { register: 0, offset: 0 }
                }
                cfa => cfa,
            };
            assert_eq!((ours.cfa, ours.is_signal), (cfa, fde.is_signal_trampoline()), "{at:#x}");
            for register in 0..COUNT {
                // In a row, the rule of the link register is stored as that of the return address.
                let expected = match register {
                    X30 => RegisterRule::Unspecified,
                    PC => gimli_rows::register(theirs, X30),
                    other => gimli_rows::register(theirs, other),
                };
                assert_eq!(ours.register(register), expected, "{at:#x}: register {register}");
            }
        }
    });
}
