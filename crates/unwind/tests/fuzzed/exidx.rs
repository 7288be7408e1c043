//! Random bytes as the tables of 32-bit ARM: row lookups and walks terminate, and results do not depend on the cache.

use std::cell::Cell;

use plumb_unwind::table::{Lookup, Table};
use plumb_unwind::{Avma, Cache, Isa, Module, Rule, Section, Sections, Svma, Walked, arm, walk};

use super::{LIMIT, Process, Source, Words};

const CODE: u32 = 0x1_0000;
const SIZE: u32 = 0x40;
const INDEX: u32 = 0x2_0000;
const TABLE: u32 = 0x3_0000;
/// Stack address that fits in 32 bits.
const STACK: u64 = 0xbe00_0000;

/// Encodes an address relative to the word's own location, in 31 bits.
fn prel31(to: u32, at: u32) -> u32 {
    to.wrapping_sub(at) & 0x7fff_ffff
}

/// Generates a sorted index of functions with random instructions: in the entry, in the table, or none.
fn tables(source: &mut Source<'_>) -> (u32, Vec<u8>, Vec<u8>) {
    let functions = 1 + u32::from(source.below(12));
    let (mut index, mut table) = (Vec::new(), Vec::new());
    for number in 0..functions {
        let at = INDEX + index.len() as u32;
        index.extend(prel31(CODE + number * SIZE, at).to_le_bytes());
        let mut bytes = || u32::from_le_bytes([source.byte(), source.byte(), source.byte(), 0]);
        let word = match bytes() % 8 {
            0 => 1,
            1 => bytes() << 8,
            2..5 => 0x8000_0000 | bytes(),
            _ => {
                let to = TABLE + table.len() as u32;
                // A compact model, or a language's own personality routine.
                let first = match bytes() % 4 {
                    0 => bytes() & 0x7fff_ffff,
                    1 => 0x8000_0000 | bytes(),
                    model => (0x8000_0000 | (model - 1) << 24) & 0xff00_ffff | ((bytes() % 4) << 16),
                };
                table.extend(first.to_le_bytes());
                for _ in 0..4 {
                    table.extend((bytes() << 8 | 0xb0).to_le_bytes());
                }
                prel31(to, at + 4)
            }
        };
        index.extend(word.to_le_bytes());
    }
    (functions, index, table)
}

fn stack(source: &mut Source<'_>, functions: u32) -> Vec<u64> {
    let mut word = || {
        let byte = u64::from(source.byte());
        match byte % 4 {
            0 => STACK + byte * 4,
            _ => u64::from(CODE) + byte * 7 % u64::from(functions * SIZE),
        }
    };
    (0..128).map(|_| word() | word() << 32).collect()
}

/// Runs generated tables, or the bytes as they are.
pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let raw = source.below(4) == 0;
    let (functions, mut index, mut table) = tables(&mut source);
    let words = stack(&mut source, functions);
    let registers: Vec<u8> = source.take(32).to_vec();
    if raw {
        (index, table) = (data.to_vec(), data.iter().rev().copied().collect());
    }
    let section = |address: u32, bytes| Some(Section { address: Svma(address.into()), bytes });
    let module = Module::new(Sections {
        exidx: section(INDEX, &*index),
        extab: section(TABLE, &*table),
        isa: Isa::Arm,
        ..Sections::default()
    });
    let table = Table::of_all(&module).ok();
    for number in 0..functions {
        let at = Svma(u64::from(CODE + number * SIZE + 5));
        let row = module.row(at);
        // A table of unsorted functions is refused.
        match table.as_ref().map(|table| table.lookup(at)) {
            Some(Lookup::Rule(rule)) => {
                let row = row.expect("the table has a rule").expect("the table has a rule");
                assert_eq!(Some(rule), Rule::compact_for::<arm::Arm>(&row), "{at:?}: {row:?}");
            }
            Some(Lookup::Odd | Lookup::Absent) | None => drop(std::hint::black_box(row)),
        }
    }
    let process = Process(module);
    let mut source = Source(&registers);
    let pc = u64::from(CODE) + u64::from(source.byte()) * 11 % u64::from(functions * SIZE);
    let mut start = arm::Registers::new(pc, STACK + u64::from(source.below(8)) * 4);
    for register in (0..15).filter(|&register| register != 13) {
        start.set(register, STACK + u64::from(source.byte()) * 4);
    }
    let mut cache = Cache::default();
    let mut walked = || -> (Vec<Walked>, _) {
        let mut memory = Words { base: STACK, words: &words, reads: Cell::new(0), is_window: false };
        let mut frames = Vec::new();
        let end = walk(&process, &mut memory, &mut cache, &start, LIMIT, &mut frames);
        assert!(!frames.is_empty() && frames.len() <= LIMIT, "{} frames", frames.len());
        assert!(memory.reads.get() <= 5 * LIMIT * 17 * 512, "{} reads", memory.reads.get());
        let inside = |frame: &Walked| frame.slot == Avma(0) || (STACK..memory.end()).contains(&frame.slot.0);
        assert!(frames.iter().all(inside), "a return address from outside the stack: {frames:?}");
        (frames, end)
    };
    assert_eq!(walked(), walked(), "walked again");
}
