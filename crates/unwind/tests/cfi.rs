//! Each call-frame instruction, augmentation and pointer encoding, on handwritten input; and the errors for malformed
//! input.

mod bytes;

use bytes::{FUNCTION, Frames, LENGTH, SECTION, USUAL, absolute, one_function};
use plumb_unwind::{CfaRule, CfiErrorKind, Expression, Module, RegisterRule, Row, Section, Sections, Svma};

fn row_at(instructions: &[u8], offset: u64) -> Row {
    let module = one_function("zR", USUAL, instructions);
    module.row(Svma(FUNCTION + offset)).expect("well formed").expect("in the function")
}

fn error(instructions: &[u8]) -> CfiErrorKind {
    let module = one_function("zR", USUAL, instructions);
    module.row(Svma(FUNCTION + 100)).expect_err("malformed").kind
}

fn cfa(register: u16, offset: i64) -> CfaRule {
    CfaRule::Register { register, offset }
}

#[test]
fn initial_instructions_hold_everywhere() {
    let row = row_at(&[], LENGTH - 1);
    assert_eq!(row.cfa, cfa(7, 8));
    assert_eq!(row.register(16), RegisterRule::Offset(-8));
    assert_eq!(row.register(6), RegisterRule::Unspecified);
    assert_eq!(row.range, Svma(FUNCTION)..Svma(FUNCTION + LENGTH));
    assert!(!row.is_signal);
}

#[test]
fn locations_advance() {
    let mut set_loc = vec![0x01];
    set_loc.extend((FUNCTION + 0x20).to_le_bytes());
    let advances: [(&[u8], u64); 6] = [
        (&[0x40 | 5], 5),
        (&[0x02, 200], 200),
        (&[0x03, 0x34, 0x02], 0x234),
        (&[0x04, 0x00, 0x08, 0, 0], 0x800),
        (&[0x1d, 0x10, 0x08, 0, 0, 0, 0, 0, 0], 0x810),
        (&set_loc, 0x20),
    ];
    for (advance, distance) in advances {
        let instructions = [advance, &[0x0e, 32]].concat();
        let before = row_at(&instructions, distance - 1);
        assert_eq!(before.cfa, cfa(7, 8), "{advance:?}");
        assert_eq!(before.range, Svma(FUNCTION)..Svma(FUNCTION + distance), "{advance:?}");
        let after = row_at(&instructions, distance);
        assert_eq!(after.cfa, cfa(7, 32), "{advance:?}");
        assert_eq!(after.range, Svma(FUNCTION + distance)..Svma(FUNCTION + LENGTH), "{advance:?}");
    }
}

#[test]
fn the_cfa_is_defined() {
    assert_eq!(row_at(&[0x0c, 6, 16], 0).cfa, cfa(6, 16), "def_cfa");
    assert_eq!(row_at(&[0x0d, 6], 0).cfa, cfa(6, 8), "def_cfa_register");
    assert_eq!(row_at(&[0x0e, 0x80, 2], 0).cfa, cfa(7, 256), "def_cfa_offset");
    assert_eq!(row_at(&[0x12, 10, 0x7e], 0).cfa, cfa(10, 16), "def_cfa_sf");
    assert_eq!(row_at(&[0x13, 0x7d], 0).cfa, cfa(7, 24), "def_cfa_offset_sf");
    let module = one_function("zR", USUAL, &[0x0f, 3, 0x77, 0x08, 0x06]);
    let row = module.row(Svma(FUNCTION)).unwrap().unwrap();
    let CfaRule::Expression(expression) = row.cfa else { panic!("def_cfa_expression: {:?}", row.cfa) };
    assert_eq!(module.expression(&row, expression), [0x77, 0x08, 0x06]);
}

#[test]
fn registers_get_rules() {
    use RegisterRule::{Offset, Register, SameValue, Undefined, ValOffset};
    let rules: [(&[u8], RegisterRule); 10] = [
        (&[0x80 | 3, 2], Offset(-16)),
        (&[0x05, 3, 4], Offset(-32)),
        (&[0x11, 3, 0x7f], Offset(8)),
        (&[0x2f, 3, 2], Offset(16)),
        (&[0x14, 3, 3], ValOffset(-24)),
        (&[0x15, 3, 0x7f], ValOffset(8)),
        (&[0x07, 3], Undefined),
        (&[0x08, 3], SameValue),
        (&[0x09, 3, 12], Register(12)),
        (&[0x2e, 64], RegisterRule::Unspecified),
    ];
    for (instruction, rule) in rules {
        assert_eq!(row_at(instruction, 0).register(3), rule, "{instruction:?}");
    }
    assert!(matches!(
        row_at(&[0x10, 3, 1, 0x06], 0).register(3),
        RegisterRule::Expression(Expression { length: 1, .. })
    ));
    assert!(matches!(
        row_at(&[0x16, 3, 2, 0x06, 0x06], 0).register(3),
        RegisterRule::ValExpression(Expression { length: 2, .. })
    ));
    // Vector registers are ignored.
    assert_eq!(row_at(&[0x05, 17, 4, 0x07, 0x90, 3], 0), row_at(&[], 0));
}

#[test]
fn states_are_remembered_and_registers_restored() {
    let instructions = [
        0x80 | 3,
        2,
        0x0a,
        0x41,
        0x0e,
        64,
        0x80 | 6,
        4,
        0x80 | 16,
        9, // remember; changes
        0x41,
        0x0b, // restore_state
        0x41,
        0x80 | 16,
        3,
        0xc0 | 3, // offset; restore rbx
        0x41,
        0x06,
        16, // restore_extended rip
    ];
    let changed = row_at(&instructions, 1);
    assert_eq!((changed.cfa, changed.register(6)), (cfa(7, 64), RegisterRule::Offset(-32)));
    let restored = row_at(&instructions, 2);
    assert_eq!((restored.cfa, restored.register(6)), (cfa(7, 8), RegisterRule::Unspecified));
    assert_eq!(restored.register(3), RegisterRule::Offset(-16));
    let register = row_at(&instructions, 3);
    assert_eq!(
        (register.register(3), register.register(16)),
        (RegisterRule::Unspecified, RegisterRule::Offset(-24))
    );
    assert_eq!(row_at(&instructions, 4).register(16), RegisterRule::Offset(-8));
}

#[test]
fn bad_instructions_are_errors() {
    assert_eq!(error(&[0x3f]), CfiErrorKind::UnknownInstruction(0x3f));
    assert_eq!(error(&[0x0b]), CfiErrorKind::UnbalancedState);
    assert_eq!(error(&[0x0a; 1000]), CfiErrorKind::UnbalancedState);
    assert_eq!(error(&[0x0e]), CfiErrorKind::Truncated);
    assert_eq!(error(&[0x0f, 200, 0]), CfiErrorKind::Truncated);
    assert_eq!(
        error(&[
            0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
            0x80, 0x80, 0
        ]),
        CfiErrorKind::TooLarge
    );
    assert_eq!(error(&[0x0f, 1, 0x06, 0x0e, 16]), CfiErrorKind::MisplacedInstruction(0x0e));
    assert_eq!(error(&[0x0f, 1, 0x06, 0x0d, 6]), CfiErrorKind::MisplacedInstruction(0x0d));
    assert_eq!(error(&[0x1d, 255, 255, 255, 255, 255, 255, 255, 255]), CfiErrorKind::TooLarge);
    let back = [&[0x01][..], &(FUNCTION - 1).to_le_bytes()].concat();
    assert_eq!(error(&back), CfiErrorKind::MisplacedInstruction(0x01));
    let restore_in_cie = one_function("zR", &[0xc3], &[]);
    let found = restore_in_cie.row(Svma(FUNCTION)).expect_err("malformed").kind;
    assert_eq!(found, CfiErrorKind::MisplacedInstruction(0xc3));
}

#[test]
fn addresses_outside_have_no_row() {
    let module = one_function("zR", USUAL, &[]);
    assert_eq!(module.row(Svma(FUNCTION - 1)), Ok(None));
    assert_eq!(module.row(Svma(FUNCTION + LENGTH)), Ok(None));
    assert_eq!(Module::<Vec<u8>>::new(Sections::default()).row(Svma(1)), Ok(None));
}

#[test]
fn augmentations() {
    assert!(one_function("zRS", USUAL, &[]).row(Svma(FUNCTION)).unwrap().unwrap().is_signal);
    assert!(
        one_function("", USUAL, &[]).row(Svma(FUNCTION)).unwrap().is_some(),
        "absolute pointers by default"
    );
    let mut frames = Frames::default();
    // A personality routine (indirect, pc-relative), an encoding for language-specific data, and the FDE's.
    let cie = frames.cie("zPLRB", &[0x9b, 1, 2, 3, 4, 0x1b, 0x00], USUAL);
    frames.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[9, 9, 9, 9]), &[0x0e, 24]);
    let row = frames.module().row(Svma(FUNCTION)).unwrap().unwrap();
    assert_eq!(row.cfa, cfa(7, 24));
    let kind = |letters| {
        let mut frames = Frames::default();
        let cie = frames.cie(letters, &[0], USUAL);
        frames.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[]), &[]);
        with_table(frames).row(Svma(FUNCTION)).expect_err("unknown").kind
    };
    assert_eq!(kind("zX"), CfiErrorKind::UnknownAugmentation(b'X'));
    assert_eq!(kind(&"z".repeat(99)), CfiErrorKind::TooLarge);
}

/// Builds a module with a table of one function, so that errors in its FDE are reported.
fn with_table(frames: Frames) -> Module<Vec<u8>> {
    let fde = {
        let first = u32::from_le_bytes(frames.bytes[..4].try_into().expect("four bytes"));
        first + 4
    };
    let at = 0x9000u64;
    let mut header = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0];
    header.extend(((FUNCTION - at) as i32).to_le_bytes());
    header.extend(((SECTION + u64::from(fde)).wrapping_sub(at) as i32).to_le_bytes());
    Module::new(Sections {
        eh_frame: Some(Section { address: Svma(SECTION), bytes: frames.bytes }),
        eh_frame_hdr: Some(Section { address: Svma(at), bytes: header }),
        ..Sections::default()
    })
}

#[test]
fn pointers_in_every_encoding() {
    let wide = |value: u64, size: usize| value.to_le_bytes()[..size].to_vec();
    let text = 0x3f_0000u64;
    let got = 0x3f_8000u64;
    for (format, size) in [(0x00, 8), (0x02, 2), (0x03, 4), (0x04, 8), (0x0a, 2), (0x0b, 4), (0x0c, 8)] {
        for base in [0x00, 0x10, 0x20, 0x30] {
            let mut frames = Frames::default();
            let cie = frames.cie("zR", &[base | format], USUAL);
            let at = SECTION + frames.bytes.len() as u64 + 8;
            let from = [0, at, text, got][usize::from(base >> 4)];
            // Two bytes reach only this far; their sign bit must not matter here.
            let function = if size == 2 { from.wrapping_add(0x1234) } else { FUNCTION };
            let begin = wide(function.wrapping_sub(from), size);
            frames.fde(cie, &[begin, wide(0x100, size)].concat(), Some(&[]), &[0x0e, 40]);
            let eh_frame = Some(Section { address: Svma(SECTION), bytes: frames.bytes });
            let sections =
                Sections { eh_frame, text: Some(Svma(text)), got: Some(Svma(got)), ..Sections::default() };
            let module = Module::new(sections);
            let row = module.row(Svma(function + 0xff)).unwrap();
            assert_eq!(row.map(|row| row.cfa), Some(cfa(7, 40)), "{:#x}", base | format);
            assert_eq!(module.row(Svma(function + 0x100)), Ok(None), "{:#x}", base | format);
        }
    }
    // LEB128, which has no fixed size.
    let mut frames = Frames::default();
    let cie = frames.cie("zR", &[0x01], USUAL);
    frames.fde(cie, &[0x80, 0x80, 0x80, 2, 0x10], Some(&[]), &[]);
    assert!(frames.module().row(Svma(FUNCTION + 15)).unwrap().is_some());
}

#[test]
fn lengths_of_64_bits_and_ends_between() {
    let mut frames = Frames::default();
    let cie = frames.cie("zR", &[0], USUAL);
    frames.fde_64(cie, &absolute(FUNCTION, 16), &[0x0e, 48]);
    // A linker put another object's section after a terminator.
    frames.bytes.extend([0; 4]);
    frames.fde(cie, &absolute(FUNCTION + 16, 16), Some(&[]), &[0x0e, 56]);
    let module = frames.module();
    assert_eq!(module.row(Svma(FUNCTION)).unwrap().unwrap().cfa, cfa(7, 48));
    assert_eq!(module.row(Svma(FUNCTION + 16)).unwrap().unwrap().cfa, cfa(7, 56));
}

#[test]
fn tables_lead_to_entries() {
    let mut frames = Frames::default();
    let cie = frames.cie("zR", &[0], USUAL);
    frames.fde(cie, &absolute(FUNCTION, LENGTH), Some(&[]), &[0x0e, 72]);
    let module = with_table(frames.clone());
    assert_eq!(module.row(Svma(FUNCTION + 9)).unwrap().unwrap().cfa, cfa(7, 72));
    assert_eq!(module.row(Svma(FUNCTION - 9)), Ok(None));
    // A table whose count exceeds its size is ignored; the section itself is still used.
    let mut sections = module.sections().clone();
    sections.eh_frame_hdr.as_mut().expect("made above").bytes[8] = 200;
    assert!(Module::new(sections).row(Svma(FUNCTION)).unwrap().is_some());
}

#[test]
fn errors_name_section_and_offset() {
    let module = one_function("zR", USUAL, &[0x3f]);
    let error = module.row(Svma(FUNCTION)).expect_err("malformed");
    let text = error.to_string();
    assert!(
        text.starts_with(".eh_frame at offset 0x") && text.ends_with("unknown call-frame instruction 0x3f"),
        "{text}"
    );
}
