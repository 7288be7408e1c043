//! Damaged and hostile files must never cause a panic, an endless loop or unbounded memory.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::fs;

use crate::truth::Folder;
use plumb_symbolize::{CompactSymbols, Missing, Options};

/// A small pseudo-random generator (xorshift), so that failures are reproducible.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Largest CPU time for a damaged file, as a multiple of that for the undamaged one: units may be read again through references, until a
/// budget is spent.
const TIMES: f64 = 1000.0;
/// Smallest CPU time that can be measured, in seconds.
const LEAST: f64 = 0.02;

/// Symbolizes the file; the crate catches parser panics, but here they are failures. Returns the CPU time used, in
/// seconds, which must be at most [`TIMES`] that of the undamaged file.
fn survives(folder: &Folder, bytes: &[u8], undamaged: f64, what: &str) -> f64 {
    let file = folder.join("mutated");
    fs::write(&file, bytes).unwrap();
    let addresses: Vec<u64> = (0..0x6000).step_by(0x35).collect();
    let (mut profile, _) = truth::profile(&file, None, &addresses);
    let options = Options { debug_roots: Vec::new(), ..Options::default() };
    let (_, summary) = truth::resolve(&mut profile, &options);
    let seconds = summary.dsos[0].seconds;
    assert!(
        seconds < TIMES * undamaged.max(LEAST),
        "{what}: {seconds} s of processor time, undamaged {undamaged}"
    );
    for missing in &summary.dsos[0].missing {
        assert!(!missing.to_string().contains("parser failed"), "{what}: {missing}");
    }
    match CompactSymbols::of(&file, u64::MAX) {
        Ok(table) => drop(table.resolve(&addresses)),
        Err(missing) => assert!(!missing.to_string().contains("parser failed"), "{what}: {missing}"),
    }
    seconds
}

#[test]
fn mutated_files_are_survived() {
    if !truth::have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("hostile");
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gdwarf-4", "-gz=zlib"]] {
        let whole = fs::read(truth::build(&folder, "program", flags)).unwrap();
        let undamaged = survives(&folder, &whole, LEAST, "undamaged");
        for round in 0..60 {
            let mut bytes = whole.clone();
            // Damages the whole file, or only the part with DWARF and the symbol tables.
            let from = if round % 3 == 0 { 0 } else { bytes.len() / 3 };
            for _ in 0..1 + numbers.next(40) {
                let at = from + numbers.next(bytes.len() - from);
                bytes[at] = [0, 0xff, 0x7f, 0x80, numbers.next(256) as u8][numbers.next(5)];
            }
            survives(&folder, &bytes, undamaged, &format!("{flags:?}, round {round}"));
        }
        for round in 0..20 {
            let length = numbers.next(whole.len());
            survives(&folder, &whole[..length], undamaged, &format!("{flags:?}, cut {round} to {length}"));
        }
    }
}

#[test]
fn a_header_full_of_ones_is_survived() {
    let folder = Folder::new("ones");
    for length in [0, 4, 16, 52, 64, 4096] {
        let mut bytes = vec![0xff; length];
        let ident = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
        let length = bytes.len().min(ident.len());
        bytes[..length].copy_from_slice(&ident[..length]);
        survives(&folder, &bytes, LEAST, "ones");
    }
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let folder = Folder::new("special");
    let fifo = folder.join("fifo");
    truth::run("mkfifo", &[fifo.to_str().unwrap()]);
    for path in [fifo.as_path(), folder.0.as_path(), std::path::Path::new("/dev/zero")] {
        let (mut profile, _) = truth::profile(path, None, &[0x1000]);
        let (_, summary) = truth::resolve(&mut profile, &Options::default());
        assert!(matches!(summary.dsos[0].missing[..], [Missing::Malformed { .. }]), "{:?}", summary.dsos[0]);
    }
}

/// Inlined calls nested a million deep, which would exhaust the stack of a recursive reader.
#[test]
fn deeply_nested_calls_are_survived() {
    if !truth::have(&["gcc", "readelf"]) {
        return;
    }
    let folder = Folder::new("nested");
    let source = folder.join("nested.s");
    let text = r#"
        .text
        .globl f
        .type f, @function
f:      .skip 64
        .size f, .-f
        .section .debug_abbrev
        .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0,0
        .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 3; .uleb128 8; .byte 0,0
        .uleb128 3; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 3; .uleb128 8; .byte 0,0
        .byte 0
        .section .debug_info
        .long 2f-1f
1:      .value 4
        .long 0
        .byte 8
        .uleb128 1; .quad f; .quad 64
        .uleb128 2; .quad f; .quad 64; .asciz "f"
        .rept 1000000
        .uleb128 3; .quad f; .quad 64; .asciz "i"
        .endr
        .rept 1000002
        .byte 0
        .endr
2:
"#;
    fs::write(&source, text).unwrap();
    let file = folder.join("nested");
    let arguments = ["-shared", "-nostdlib", "-o", file.to_str().unwrap(), source.to_str().unwrap()];
    truth::run("gcc", &arguments);
    let address = truth::functions(&file).first().unwrap().start + 5;
    let (mut profile, _) = truth::profile(&file, None, &[address]);
    let (found, _) = truth::resolve(&mut profile, &Options::default());
    let chain = &found[&address];
    assert_eq!(chain.last().unwrap().0, "f");
    assert!((2..=1000).contains(&chain.len()), "{}", chain.len());
}

/// A compressed section of a few kilobytes that expands to 480 MiB of zeros: an ELF header, then a zstd frame (RFC 8878) of blocks that
/// repeat a byte.
fn bomb() -> Vec<u8> {
    const BLOCK: u32 = 128 << 10;
    const BLOCKS: u32 = 480 * 8;
    let size = u64::from(BLOCK) * u64::from(BLOCKS);
    let mut bytes = [&2_u32.to_le_bytes()[..], &[0; 4], &size.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    bytes.extend([0x28, 0xb5, 0x2f, 0xfd, 0xe0]);
    bytes.extend(size.to_le_bytes());
    for block in 0..BLOCKS {
        let is_last = u32::from(block + 1 == BLOCKS);
        bytes.extend_from_slice(&(is_last | 1 << 1 | BLOCK << 3).to_le_bytes()[..3]);
        bytes.push(0);
    }
    bytes
}

#[test]
fn small_sections_that_claim_to_be_large_are_refused() {
    if !truth::have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("bomb");
    let mut bytes = fs::read(truth::build(&folder, "program", &["-O2", "-g"])).unwrap();
    let number = |bytes: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())).unwrap()
    };
    let short =
        |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()));
    let (headers, count, names) = (number(&bytes, 40), short(&bytes, 60), short(&bytes, 62));
    let names = number(&bytes, headers + 64 * names + 24);
    let (offset, bomb) = (bytes.len() as u64, bomb());
    let mut changed = 0;
    for header in (0..count).map(|index| headers + 64 * index) {
        let name = names + number(&bytes, header) % (1 << 32);
        if bytes[name..].starts_with(b".debug_") {
            // Flags (SHF_COMPRESSED), offset and size: all sections share the same few kilobytes.
            for (at, value) in [(8, 0x800), (24, offset), (32, bomb.len() as u64)] {
                bytes[header + at..header + at + 8].copy_from_slice(&value.to_le_bytes());
            }
            changed += 1;
        }
    }
    assert!(changed > 3);
    bytes.extend(bomb);
    let file = folder.join("bomb");
    fs::write(&file, &bytes).unwrap();
    let (mut profile, _) = truth::profile(&file, None, &(0..0x6000).step_by(0x35).collect::<Vec<_>>());
    let options = Options { debug_roots: Vec::new(), ..Options::default() };
    let (_, summary) = truth::resolve(&mut profile, &options);
    let missing: Vec<String> = summary.dsos[0].missing.iter().map(ToString::to_string).collect();
    assert!(missing.iter().any(|text| text.contains("decompresses to too many bytes")), "{missing:?}");
}
