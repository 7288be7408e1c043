//! Tests that [`super`] reads the tables of real interpreters, and rejects others.

use super::*;

/// Table of Debian's CPython 3.14.10, without the cookie.
const OF_3_14: [u64; 94] = [
    0x30e0af0, 0, 316616, 784, 808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0,
    7800, 7792, 7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120,
    128, 136, 68, 52, 96, 104, 208, 0, 16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48,
    32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40, 264, 192, 160, 24, 72, 67, 0, 8, 24, 304, 8076,
    0, 4, 512,
];
/// Table of Debian's CPython 3.15.2, without the cookie.
const OF_3_15: [u64; 110] = [
    0x30f02f0, 0, 346568, 912, 936, 226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0,
    7752, 7744, 7944, 0, 888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136, 288, 0, 88, 8, 0, 56,
    80, 74, 64, 0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0, 16, 8, 424, 24, 88, 168, 32, 288, 944,
    888, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40,
    56, 176, 112, 120, 1120, 104, 160, 24, 72, 67, 0, 8, 24, 344, 8028, 0, 4, 512,
];

fn table(words: &[u64]) -> Vec<u8> {
    COOKIE.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// The expected values come from `layout_tests.c`, compiled with the headers of these versions.
#[test]
fn tables_of_real_interpreters_say_what_their_headers_do() {
    let of_3_14 = PythonLayout {
        runtime: Runtime { interpreters: 808, current: 0 },
        interpreter: Interpreter { next: 7272, threads: 7344 },
        thread: Thread { next: 8, id: 152, frame: 72 },
        chain: Chain::EntryFrames { cframe: None },
        frame: FrameLayout { size: 80, code: 0, caller: 8, instruction: 56, is_entry: 0, owner: 74 },
        code: CodeLayout {
            size: 208,
            first_line: 68,
            file: 112,
            name: 128,
            lines: 136,
            line_table: LineTable::Locations,
            first_traceable: 192,
            instructions: 208,
            identity: ALL_WORDS,
        },
        object: Object { size: 16, bytes: 32, length: 16, state: 32, ascii: 40, wide: 56 },
    };
    assert_eq!(read(&table(&OF_3_14), 0x030e_0af0), Some(of_3_14));
    let of_3_15 = PythonLayout {
        runtime: Runtime { interpreters: 936, current: 0 },
        interpreter: Interpreter { next: 7264, threads: 7336 },
        thread: Thread { next: 8, id: 176, frame: 72 },
        ..of_3_14
    };
    assert_eq!(read(&table(&OF_3_15), 0x030f_02f0), Some(of_3_15));
}

#[test]
fn only_sensible_tables_are_believed() {
    let good = table(&OF_3_14);
    assert_eq!(read(&good, 0x030e_0bf0), None, "another release");
    let mut later = good.clone();
    later[8..16].copy_from_slice(&u64::to_le_bytes(0x0310_00f0));
    assert_eq!(read(&later, 0x0310_00f0), None, "a form that is not known");
    for length in 0..81 * 8 {
        assert_eq!(read(&good[..length], 0x030e_0af0), None, "cut off at {length}");
    }
    // Members of frames and code beyond the part that is read, and one at an impossible offset.
    for (index, value) in [(36, 4096), (33, 108), (43, 236), (48, 4096), (48, 8), (9, 1 << 40)] {
        let mut bad = good.clone();
        bad[8 * index..8 * index + 8].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(read(&bad, 0x030e_0af0), None, "word {index} is {value}");
    }
}
