//! `.ARM.exidx` and `.ARM.extab`: each unwind instruction as the ABI defines it (IHI 0038 §10.3), the personality
//! models that contain them, real files compared with `readelf`, and malformed bytes.

mod elf;
mod readelf;

use plumb_fixtures::{Requirement, skip};
use plumb_unwind::arm::{LR, PC, SP};
use plumb_unwind::{
    CfaRule, CfiError, CfiErrorKind, Isa, Module, RegisterRule, Row, Section, Sections, Svma,
};

const INDEX: u64 = 0x1_0000;
const TABLE: u64 = 0x2_0000;
const FUNCTION: u64 = 0x8000;
const LENGTH: u64 = 0x100;

fn prel31(from: u64, to: u64) -> u32 {
    (to.wrapping_sub(from) as u32) & 0x7fff_ffff
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A file with these words as its index and table.
fn file(index: &[u32], table: &[u32]) -> Module<Vec<u8>> {
    let section = |address, words: &[u32]| {
        (!words.is_empty()).then(|| Section { address: Svma(address), bytes: bytes(words) })
    };
    let (exidx, extab) = (section(INDEX, index), section(TABLE, table));
    Module::new(Sections { exidx, extab, isa: Isa::Arm, ..Sections::default() })
}

/// A file with a function whose entry is in the table, and after it one that cannot be unwound.
fn with_table(table: &[u32]) -> Module<Vec<u8>> {
    let end = [prel31(INDEX + 8, FUNCTION + LENGTH), 1];
    file(&[&[prel31(INDEX, FUNCTION), prel31(INDEX + 4, TABLE)], &end[..]].concat(), table)
}

fn row_of(module: &Module<Vec<u8>>) -> Result<Row, CfiError> {
    module.row(Svma(FUNCTION + 4)).map(|row| row.expect("the function is in the index"))
}

/// Returns the row for instructions in the second personality model, which has room for many.
fn run(instructions: &[u8]) -> Result<Row, CfiError> {
    let mut padded = instructions.to_vec();
    padded.resize((2 + instructions.len().saturating_sub(2).next_multiple_of(4)).max(2), 0xb0);
    let words: Vec<u32> = padded[2..]
        .chunks(4)
        .map(|chunk| u32::from_be_bytes(chunk.try_into().expect("four bytes")))
        .collect();
    let head = u32::from_be_bytes([0x81, words.len() as u8, padded[0], padded[1]]);
    row_of(&with_table(&[&[head], &words[..]].concat()))
}

/// Checks the effect of instructions: the CFA's offset from the stack pointer, and the offsets of loaded registers
/// from the initial stack pointer.
#[track_caller]
fn does(instructions: &[u8], size: i64, loaded: &[(u16, i64)]) {
    let row = run(instructions).expect("a row");
    assert_eq!(row.cfa, CfaRule::Register { register: SP, offset: size }, "{instructions:02x?}");
    has(&row, size, loaded);
}

#[track_caller]
fn has(row: &Row, size: i64, loaded: &[(u16, i64)]) {
    for register in 0..16 {
        let found = loaded.iter().find(|&&(number, _)| number == register);
        let expected = found.map_or(RegisterRule::Unspecified, |&(_, at)| RegisterRule::Offset(at - size));
        assert_eq!(row.register(register), expected, "r{register} of {row:?}");
    }
}

fn fails(instructions: &[u8], kind: CfiErrorKind) {
    assert_eq!(run(instructions).expect_err("no row").kind, kind, "{instructions:02x?}");
}

fn is_unknown(instructions: &[u8]) {
    fails(instructions, CfiErrorKind::UnknownInstruction(instructions[0]));
}

#[test]
fn the_stack_pointer_moves() {
    does(&[0x00], 4, &[]);
    does(&[0x3f], 256, &[]);
    does(&[0x3f, 0x01], 264, &[]);
    does(&[0x40], -4, &[]);
    does(&[0x01, 0x7f, 0x3f], 8, &[]);
    does(&[0xb2, 0x00], 0x204, &[]);
    does(&[0xb2, 0x81, 0x01], 0x204 + 4 * 129, &[]);
    does(&[0xb2, 0xff, 0xff, 0x03, 0x00], 0x204 + 4 * 0xffff + 4, &[]);
}

#[test]
fn registers_are_loaded_by_mask() {
    // Bits 0..=11 are r4..r15. The value loaded as r14 is the return address.
    does(&[0x80, 0x01], 4, &[(4, 0)]);
    does(&[0x80, 0x80], 4, &[(11, 0)]);
    does(&[0x81, 0x00], 4, &[(12, 0)]);
    does(&[0x84, 0x00], 4, &[(PC, 0)]);
    does(&[0x84, 0x09], 12, &[(4, 0), (7, 4), (PC, 8)]);
    does(&[0x02, 0x84, 0x80], 20, &[(11, 12), (PC, 16)]);
    does(&[0xb1, 0x01], 4, &[(0, 0)]);
    does(&[0xb1, 0x0f], 16, &[(0, 0), (1, 4), (2, 8), (3, 12)]);
    does(&[0xb1, 0x08, 0x84, 0x00], 8, &[(3, 0), (PC, 4)]);
}

#[test]
fn registers_are_loaded_by_range() {
    for last in 0..8u16 {
        let registers: Vec<_> = (0..=last).map(|index| (4 + index, 4 * i64::from(index))).collect();
        let size = 4 * (i64::from(last) + 1);
        does(&[0xa0 | last as u8], size, &registers);
        does(&[0xa8 | last as u8], size + 4, &[&registers[..], &[(PC, size)]].concat());
    }
}

#[test]
fn other_registers_only_take_room() {
    // VFP registers, stored by FSTMFDX, which pads: by number and count, and from d8 on.
    does(&[0xb3, 0x80], 12, &[]);
    does(&[0xb3, 0x83], 36, &[]);
    does(&[0xb8], 12, &[]);
    does(&[0xbf], 68, &[]);
    // VFP registers, stored by VPUSH: from d16, d0 and d8 on.
    does(&[0xc8, 0x0f], 128, &[]);
    does(&[0xc9, 0x80], 8, &[]);
    does(&[0xc9, 0x87], 64, &[]);
    does(&[0xd0], 8, &[]);
    does(&[0xd7], 64, &[]);
    // iWMMXt data registers: from wR10 on, by number and count; control registers by mask.
    does(&[0xc0], 8, &[]);
    does(&[0xc5], 48, &[]);
    does(&[0xc6, 0xa2], 24, &[]);
    does(&[0xc7, 0x01], 4, &[]);
    does(&[0xc7, 0x0f], 16, &[]);
    // Authentication codes of return addresses.
    does(&[0xb4, 0xa8], 12, &[(4, 4), (PC, 8)]);
    does(&[0xb5], 0, &[]);
    does(&[0xd1, 0x84, 0x01], 24, &[(4, 16), (PC, 20)]);
}

#[test]
fn the_stack_pointer_comes_from_a_register() {
    for register in (0..16).filter(|register| ![13, 15].contains(register)) {
        let row = run(&[0x00, 0x90 | register as u8, 0x41, 0x84, 0x80]).unwrap();
        assert_eq!(row.cfa, CfaRule::Register { register, offset: 0 });
        has(&row, 0, &[(11, -8), (PC, -4)]);
    }
    // From a register that was just loaded: frames of the old procedure call standard.
    does(&[0x85, 0x80, 0x9c], 12, &[(11, 0), (12, 4), (PC, 8), (SP, 4)]);
}

#[test]
fn a_loaded_program_counter_is_what_a_signal_interrupted() {
    let row = run(&[0x0f, 0xb1, 0x0f, 0x8f, 0xff]).unwrap();
    assert!(row.is_signal);
    let all: Vec<_> = (0..16).map(|register| (register, 64 + 4 * i64::from(register))).collect();
    has(&row, 128, &all);
    let row = run(&[0x84, 0x00]).unwrap();
    assert!(!row.is_signal);
    assert_eq!(row.register(LR), RegisterRule::Unspecified);
}

#[test]
fn finish_is_the_end() {
    does(&[0xb0, 0x9d], 0, &[]);
    does(&[0x00, 0xb0, 0x00, 0x00], 4, &[]);
}

#[test]
fn what_is_spare_or_refuses_is_an_error() {
    is_unknown(&[0x80, 0x00]);
    for op in [0x9d, 0x9f, 0xb6, 0xb7] {
        is_unknown(&[op]);
    }
    for op in (0xca..=0xcf).chain(0xd8..=0xff) {
        is_unknown(&[op]);
    }
    for mask in [0x00].into_iter().chain(0x10..=0xff) {
        is_unknown(&[0xb1, mask]);
        is_unknown(&[0xc7, mask]);
    }
}

#[test]
fn what_no_row_can_say_is_an_error() {
    let misplaced = CfiErrorKind::MisplacedInstruction;
    // A second base, and moves after the stack pointer was loaded.
    fails(&[0x80, 0x01, 0x97], misplaced(0x97));
    fails(&[0x82, 0x00, 0x00], misplaced(0x00));
    fails(&[0x82, 0x00, 0xa8], misplaced(0xa8));
    fails(&[0x82, 0x00, 0x97], misplaced(0x97));
    fails(&[0xb2, 0xff, 0xff, 0xff, 0xff, 0x7f], misplaced(0xb2));
    fails(&[0x00, 0x00, 0x00, 0x00, 0x00, 0x80], CfiErrorKind::Truncated);
    fails(&[0x00, 0xb2, 0x80, 0x80, 0x80, 0x80], CfiErrorKind::Truncated);
}

#[test]
fn models_hold_instructions() {
    // In the index.
    let inline = file(&[prel31(INDEX, FUNCTION), 0x80a8_b0b0], &[]);
    has(&row_of(&inline).unwrap(), 8, &[(4, 0), (PC, 4)]);
    let other_inline = file(&[prel31(INDEX, FUNCTION), 0x81a8_b0b0], &[]);
    assert_eq!(row_of(&other_inline).unwrap_err().kind, CfiErrorKind::UnknownPersonality(0x81));
    // In the table: three bytes; two bytes and further words for the second and third routine.
    has(&row_of(&with_table(&[0x8000_01a8])).unwrap(), 20, &[(4, 12), (PC, 16)]);
    for model in [0x81, 0x82] {
        let head = model << 24 | 2 << 16 | 0x0001;
        let module = with_table(&[head, 0x0102_0304, 0x0506_a8b0, 0x9f9f_9f9f]);
        let size = 4 + 8 + 8 + 12 + 16 + 20 + 24 + 28;
        has(&row_of(&module).unwrap(), size + 8, &[(4, size), (PC, size + 4)]);
    }
    assert_eq!(row_of(&with_table(&[0x8300_b0b0])).unwrap_err().kind, CfiErrorKind::UnknownPersonality(0x83));
    // A language's personality routine: its address, then a count of words.
    let module = with_table(&[prel31(TABLE, 0x9000), 0x0100_01a8, 0xb0b0_b0b0, 0xffff_ffff]);
    has(&row_of(&module).unwrap(), 20, &[(4, 12), (PC, 16)]);
    // The finish instruction is optional.
    has(&row_of(&with_table(&[prel31(TABLE, 0x9000), 0x0000_01a8])).unwrap(), 20, &[(4, 12), (PC, 16)]);
}

#[test]
fn functions_are_found() {
    let starts = [0x8000, 0x8010, 0x8021, 0x9000];
    // vsp plus 4, 8, 12, 16.
    let words = (0..4)
        .zip(starts)
        .flat_map(|(index, start)| [prel31(INDEX + 8 * u64::from(index), start), 0x8000_b0b0 | index << 16]);
    let module = file(&words.collect::<Vec<_>>(), &[]);
    assert_eq!(module.row(Svma(0x7fff)), Ok(None));
    // The Thumb bit is not part of the address.
    for (pc, offset) in
        [(0x8000, 4), (0x800f, 4), (0x8010, 8), (0x801f, 8), (0x8020, 12), (0x8fff, 12), (0x9000, 16)]
    {
        let row = module.row(Svma(pc)).unwrap().unwrap();
        assert_eq!(row.cfa, CfaRule::Register { register: SP, offset }, "{pc:#x}");
    }
    assert_eq!(module.row(Svma(0x8011)).unwrap().unwrap().range, Svma(0x8010)..Svma(0x8020));
    let root = file(&[prel31(INDEX, FUNCTION), 1], &[]);
    assert_eq!(row_of(&root).unwrap().register(PC), RegisterRule::Undefined);
}

#[test]
fn sections_that_end_are_errors() {
    let kind = |module: Module<Vec<u8>>| row_of(&module).unwrap_err().kind;
    assert_eq!(kind(with_table(&[])), CfiErrorKind::Truncated);
    assert_eq!(kind(with_table(&[prel31(TABLE, 0x9000)])), CfiErrorKind::Truncated);
    assert_eq!(kind(with_table(&[0x8102_b0b0, 0xb0b0_b0b0])), CfiErrorKind::Truncated);
    let outside = file(&[prel31(INDEX, FUNCTION), prel31(INDEX + 4, TABLE - 4)], &[0x8000_b0b0]);
    assert_eq!(kind(outside), CfiErrorKind::Truncated);
    assert_eq!(file(&[prel31(INDEX, FUNCTION)], &[]).row(Svma(FUNCTION)), Ok(None), "half an entry is none");
}

/// The rows of all functions in real files equal the output of `readelf -u`.
#[test]
fn rows_equal_readelf() {
    let libraries = std::path::Path::new("/usr/arm-linux-gnueabihf/lib");
    for name in ["libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-armhf.so.3"] {
        let path = libraries.join(name);
        let Some(functions) = readelf::functions(&path) else {
            skip(
                Requirement::Cross,
                format_args!("{} or arm-linux-gnueabihf-readelf is not on this machine", path.display()),
            );
            continue;
        };
        let data = std::fs::read(&path).unwrap();
        let module = Module::new(elf::sections(&data).unwrap());
        let mut rows = 0;
        for (address, expected) in functions {
            let row = module.row(Svma(address)).unwrap().unwrap();
            rows += 1;
            let Some(expected) = expected else {
                assert_eq!(row.register(PC), RegisterRule::Undefined, "{name} at {address:#x}");
                continue;
            };
            assert_eq!(
                row.cfa,
                CfaRule::Register { register: expected.base, offset: expected.offset },
                "{name} at {address:#x}"
            );
            has(&row, expected.offset, &expected.loaded);
        }
        println!("{name}: {rows} functions");
        assert!(rows > 5, "{name}: {rows}");
    }
}

/// Random words give a row, an error or nothing, but never a panic.
#[test]
fn random_words() {
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    };
    let mut rows = 0;
    for _ in 0..20_000 {
        let table: Vec<u32> = (0..1 + random() % 40)
            .map(|index| match index {
                0 if random() % 2 == 0 => 0x8100_0101 | ((random() % 8) as u32 * 0x1_0000),
                _ => random() as u32 & if random() % 2 == 0 { 0x3f3f_3f3f } else { u32::MAX },
            })
            .collect();
        let index: Vec<u32> = (0..2 + random() % 6)
            .map(|index| match random() % 8 {
                0 => random() as u32,
                _ if index % 2 == 0 => prel31(INDEX + 4 * index, FUNCTION + 16 * index),
                _ => prel31(INDEX + 4 * index, TABLE + 4 * (random() % 4)),
            })
            .collect();
        let module = file(&index, &table);
        for pc in [FUNCTION, FUNCTION + 40, random() & 0xffff_ffff] {
            rows += usize::from(matches!(module.row(Svma(pc)), Ok(Some(_))));
        }
    }
    assert!(rows > 1000, "some of them make sense: {rows}");
}
