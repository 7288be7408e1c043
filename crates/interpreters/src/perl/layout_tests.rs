//! Compares [`super`] with the offsets that a C compiler finds in the installed version's headers.

use std::process::Command;

use plumb_fixtures::{Requirement, skip};

use super::*;

const PROGRAM: &str = include_str!("layout_tests.c");
/// Prints the directory of Perl's headers and the flags that it was built with.
const TELL: &str = r#"use Config; print "$Config{archlibexp}/CORE\n$Config{ccflags}" if $Config{usethreads}"#;

#[test]
fn offsets_are_those_of_the_headers() {
    let told = Command::new("perl").args(["-e", TELL]).output();
    let told = told.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into());
    let headers = told.lines().next().unwrap_or_default();
    if !std::path::Path::new(headers).join("perl.h").exists() {
        skip(Requirement::Perl, "no headers of Perl with threads");
        return;
    }
    let folder = std::env::temp_dir().join(format!("plumb-perl-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("offsets.c"), folder.join("offsets"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(told.lines().nth(1).unwrap_or_default().split_whitespace());
    // Functions in the headers call Perl, but are not called themselves.
    gcc.args(["-w", "-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-I", headers]);
    assert!(gcc.arg(&source).arg("-o").arg(&program).status().unwrap().success());
    let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let numbers: Vec<u32> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let (&[version, bytes], offsets) = numbers.split_first_chunk().expect("the version comes first");
    let layout = of(version, bytes).expect("a version that is known");
    let PerlLayout { statement, contexts, phase, purpose, context_bytes, has_names_in_body } = layout;
    let word = |index: usize| (IDENTITY + 8 * index) as u32;
    let masked: Vec<u32> = (0..MASKS.len()).filter(|&index| MASKS[index] != 0).map(word).collect();
    let [start, root, name, file] = masked[..] else { panic!("{masked:?}") };
    let kinds = [KIND, CALL, FORMAT, EVAL, TRY].map(u32::from);
    let ours = [
        &[statement, contexts, phase, purpose, context_bytes][..],
        &[layout.context_code(), layout.context_code(), has_names_in_body.into(), BODY_NAMES],
        &[LIST_CONTEXTS, LIST_OUTER, LIST_INNERMOST, SORT],
        &[CONTEXT_STATEMENT, CONTEXT_RETURN, CONTEXT_RETURN, CONTEXT_RETURN],
        &kinds,
        &[STATEMENT_LINE, STATEMENT_FILE, RUNS],
        &[CODE_PACKAGE, start, root, name, file, CODE_FLAGS, NAMED as u32, LEXICAL as u32],
        &[GLOB_NAME, GLOB_PACKAGE, 0, PACKAGE_SYMBOLS, BODY_LAST_SYMBOL, 0, NAMES_COUNT, NAMES_COUNT + 4],
        &[TEXT_LENGTH, TEXT],
    ];
    assert_eq!(offsets, ours.concat(), "Perl 5.{version}");
    assert_eq!([CODE_NAME, CODE_FILE], [name, file]);
}

/// As `layout_tests.c` prints them when it is built for aarch64 with the headers of Debian's Perl 5.32, 5.36 and 5.40.
#[test]
fn interpreters_of_aarch64_are_larger() {
    for (version, bytes, contexts, phase) in
        [(32, 3888, 240, 2628), (36, 3864, 224, 2608), (40, 3864, 224, 2312)]
    {
        let layout = of(version, bytes).expect("a version that is known");
        assert_eq!((layout.contexts, layout.phase), (contexts, phase), "Perl 5.{version}");
    }
}

#[test]
fn other_builds_are_not_known() {
    assert!(of(36, 3768).is_some() && of(40, 3768).is_some());
    assert!([(36, 1), (36, 3760), (28, 3280), (44, 3768)].iter().all(|&(v, bytes)| of(v, bytes).is_none()));
}
