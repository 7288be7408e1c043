//! Compares [`super`] with the offsets that a C compiler finds in the installed version's headers.

use std::path::PathBuf;
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

use super::*;

const PROGRAM: &str = include_str!("layout_tests.c");

/// Directory of PHP's headers.
fn headers() -> Option<PathBuf> {
    let mut folders = std::fs::read_dir("/usr/include/php").ok()?.flatten().map(|entry| entry.path());
    let found = folders.find(|folder| folder.join("Zend/zend_globals.h").exists());
    found.filter(|folder| {
        // A thread-safe build has its globals elsewhere.
        let config = std::fs::read_to_string(folder.join("main/php_config.h")).unwrap_or_default();
        !config.lines().any(|line| line.starts_with("#define ZTS 1"))
    })
}

#[test]
fn offsets_are_those_of_the_headers() {
    let Some(headers) = headers() else {
        skip(Requirement::Php, "no headers of PHP in /usr/include/php");
        return;
    };
    let folder = std::env::temp_dir().join(format!("plumb-php-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("offsets.c"), folder.join("offsets"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    for part in ["", "main", "Zend", "TSRM"] {
        gcc.arg("-I").arg(headers.join(part));
    }
    assert!(gcc.arg("-w").arg(&source).arg("-o").arg(&program).status().unwrap().success());
    let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let numbers: Vec<u64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let ([major, minor], offsets) = numbers.split_first_chunk().expect("the version comes first");
    let layout = of((*major as u32, *minor as u32)).expect("a version that is known");
    let ours = [
        layout.current.into(),
        layout.file.into(),
        u64::from(layout.file) + 8,
        CALL_INSTRUCTION.into(),
        CALL_FUNCTION.into(),
        u64::from(CALL_INFO) * 8 + 1,
        CALL_CALLER.into(),
        SCRIPT_TYPES[0].into(),
        SCRIPT_TYPES[1].into(),
        FUNCTION_NAME.into(),
        FUNCTION_CLASS.into(),
        INSTRUCTION_LINE.into(),
        CLASS_NAME.into(),
        TEXT_LENGTH as u64,
        TEXT,
    ];
    assert_eq!(offsets, ours, "PHP {major}.{minor}");
    assert_eq!(CALL_IS_TOP, 2, "the bit that the program looks for");
}

#[test]
fn functions_are_told_by_file_and_lines() {
    let versions = [(7, 4), (8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5)];
    for version in versions {
        let layout = of(version).expect("it is known");
        let words = layout.identity();
        assert_eq!(words.iter().filter(|&&word| word != 0).count(), 2);
        assert!(layout.file as usize + 16 <= MAX_FUNCTION_BYTES);
    }
    assert!(of((7, 3)).is_none() && of((8, 6)).is_none());
}
