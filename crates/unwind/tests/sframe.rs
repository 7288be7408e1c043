//! Rules of `.sframe` against those of `.eh_frame` in files that have both, which one assembler has made of the same directives.
//!
//! `sections` has these sections of a library of `programs/sframe.c` (`gcc -O2 -fPIC`, `as --gsframe`, `ld -shared -z noseparate-code`), one for each version
//! of the format: binutils 2.40, 2.44 and a snapshot of 2.47.

use plumb_unwind::{CfaRule, Module, RegisterRule, Row, Section, Sections, Svma, sframe, x86_64};

/// Sections of a version, where they are loaded, and where code begins and ends.
struct Sample {
    version: u8,
    eh_frame: (u64, &'static [u8]),
    sframe: (u64, &'static [u8]),
    plt: (u64, u64),
    end: u64,
    /// The assembler can't say the rules of one function.
    lacks_function: bool,
}

const SAMPLES: [Sample; 3] = [
    Sample {
        version: 1,
        eh_frame: (0x5f8, include_bytes!("sections/v1.eh_frame")),
        sframe: (0x730, include_bytes!("sections/v1.sframe")),
        plt: (0x3c0, 0x430),
        end: 0x5f4,
        lacks_function: true,
    },
    Sample {
        version: 2,
        eh_frame: (0x5c8, include_bytes!("sections/v2.eh_frame")),
        sframe: (0x700, include_bytes!("sections/v2.sframe")),
        plt: (0x390, 0x400),
        end: 0x5c4,
        lacks_function: true,
    },
    Sample {
        version: 3,
        eh_frame: (0x5c8, include_bytes!("sections/v3.eh_frame")),
        sframe: (0x700, include_bytes!("sections/v3.sframe")),
        plt: (0x390, 0x400),
        end: 0x5c4,
        lacks_function: false,
    },
];

fn module(address: u64, bytes: Vec<u8>) -> Module<Vec<u8>> {
    let eh_frame = Some(Section { address: Svma(address), bytes });
    Module::new(Sections { eh_frame, ..Sections::default() })
}

/// A rule with the bytes of its expression; nothing said is the same value.
fn said(module: &Module<Vec<u8>>, row: &Row, register: u16) -> (RegisterRule, Vec<u8>) {
    match row.register(register) {
        RegisterRule::Unspecified => (RegisterRule::SameValue, Vec::new()),
        RegisterRule::Expression(expression) => {
            (RegisterRule::Undefined, [b"at", module.expression(row, expression)].concat())
        }
        RegisterRule::ValExpression(expression) => {
            (RegisterRule::Undefined, [b"is", module.expression(row, expression)].concat())
        }
        rule => (rule, Vec::new()),
    }
}

fn cfa(module: &Module<Vec<u8>>, row: &Row) -> (CfaRule, Vec<u8>) {
    match row.cfa {
        CfaRule::Expression(expression) => (CfaRule::Undefined, module.expression(row, expression).to_vec()),
        rule => (rule, Vec::new()),
    }
}

#[test]
fn rules_are_those_of_eh_frame() {
    for Sample { version, eh_frame, sframe: (address, bytes), plt, end, lacks_function } in SAMPLES {
        let known = module(eh_frame.0, eh_frame.1.to_vec());
        let entries = sframe::eh_frame(bytes, Svma(address), |_| true).expect("it has functions");
        let made = module(0, entries);
        let (mut same, mut missing) = (0, 0);
        for pc in (plt.1..end).map(Svma) {
            let expected = known.row(pc).expect("it is well formed");
            let row = made.row(pc).expect("it is well formed");
            let (Some(expected), Some(row)) = (&expected, &row) else {
                // Between functions there are rules of neither.
                assert!(row.is_none(), "version {version}: {pc:?}");
                missing += u32::from(expected.is_some());
                continue;
            };
            assert_eq!(cfa(&made, row), cfa(&known, expected), "version {version}: {pc:?}");
            for register in [x86_64::RBP, x86_64::RIP] {
                let (found, expected) = (said(&made, row, register), said(&known, expected, register));
                assert_eq!(found, expected, "version {version}: {pc:?}, register {register}");
            }
            same += 1;
        }
        assert!(same > 250, "version {version}: {same}");
        assert_eq!(missing > 0, lacks_function, "version {version}: {missing}");
        // All stubs but the first have pushed a word once their second instruction has run.
        for pc in plt.0 + 16..plt.1 {
            let row = made.row(Svma(pc)).expect("it is well formed").expect("it has rules");
            let offset = if pc & 15 >= 11 { 16 } else { 8 };
            assert_eq!(
                row.cfa,
                CfaRule::Register { register: x86_64::RSP, offset },
                "version {version}: {pc:#x}"
            );
        }
    }
}

#[test]
fn only_functions_that_are_wanted_have_entries() {
    let Sample { sframe: (address, bytes), plt, end, .. } = &SAMPLES[2];
    let entries = sframe::eh_frame(bytes, Svma(*address), |at| at.0 == plt.1).expect("one is wanted");
    let made = module(0, entries);
    let with_rules = (plt.0..*end).filter(|&pc| made.row(Svma(pc)).expect("it is well formed").is_some());
    assert_eq!(with_rules.collect::<Vec<_>>(), (plt.1..plt.1 + 15).collect::<Vec<_>>());
    assert_eq!(sframe::eh_frame(bytes, Svma(*address), |_| false), None);
    assert_eq!(sframe::eh_frame(&[], Svma(0), |_| true), None);
    // Of another machine, of a version to come.
    for (at, value) in [(4, 2), (2, 4), (0, 0)] {
        let mut other = bytes.to_vec();
        other[at] = value;
        assert_eq!(sframe::eh_frame(&other, Svma(*address), |_| true), None);
    }
}

/// Functions that all have the same rows cost no more than the section has bytes.
#[test]
fn work_is_bounded_by_the_section() {
    let (functions, rows) = (1000_u32, 20_000_u32);
    let mut bytes = vec![0xe2, 0xde, 2, 0, 3, 0, 0xf8, 0];
    for word in [functions, rows, 6 * rows, 0, 20 * functions] {
        bytes.extend(word.to_le_bytes());
    }
    for function in 0..functions {
        for word in [0x10_0000 * function, 0x10_0000, 0, rows] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([2, 0, 0, 0]);
    }
    for row in 0..rows {
        bytes.extend((4 * row).to_le_bytes());
        bytes.extend([1 << 1 | 1, 8]);
    }
    let entries = sframe::eh_frame(&bytes, Svma(0), |_| true).expect("it has functions");
    assert!(entries.len() < 20 * bytes.len(), "{} of {}", entries.len(), bytes.len());
}
