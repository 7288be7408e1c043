//! The table of a file has the same answer for each address as the file itself.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::truth::{Folder, build, have, run};
use object::{Object, ObjectSection, SectionKind};
use plumb_fixtures::probe::go;
use plumb_profile::{Line, Profile};
use plumb_symbolize::{CompactCall, CompactError, CompactSymbols, Options, SymbolDetail, symbolize};

/// Memory that suffices for all files here, in bytes.
const ENOUGH: u64 = 1 << 30;

/// Most addresses of a file.
const MOST: usize = 200_000;

/// Addresses of all code, or of some of it, and some around it.
fn addresses(file: &Path) -> Vec<u64> {
    let bytes = std::fs::read(file).unwrap();
    let image = object::File::parse(&*bytes).unwrap();
    let code = image.sections().filter(|section| section.kind() == SectionKind::Text);
    let around = |section: object::Section<'_, '_>| {
        section.address().saturating_sub(64)..section.address() + section.size() + 64
    };
    let mut addresses: Vec<u64> = code.flat_map(around).collect();
    addresses.extend([0, 1, u64::MAX - 1]);
    addresses.sort_unstable();
    addresses.dedup();
    let step = addresses.len().div_ceil(MOST);
    addresses.into_iter().step_by(step).collect()
}

fn call(profile: &Profile, line: &Line) -> CompactCall {
    let text = |id| profile.strings.get(id).to_owned();
    let function = &profile.symbols.functions[line.function];
    CompactCall {
        function: text(function.name),
        linkage_name: text(function.linkage_name),
        nameless_start: None,
        file: text(line.file),
        line: line.line,
        start_line: function.start_line,
        inlined: line.inlined,
    }
}

/// The file's own answer for each address.
fn expected(file: &Path, addresses: &[u64], lines: bool) -> Vec<Vec<CompactCall>> {
    let (mut profile, _) = truth::profile(file, None, addresses);
    let options = Options { debug_roots: Vec::new(), cache: None, lines, ..Options::default() };
    symbolize(&mut profile, &options, &mut |_| {});
    let frames = profile.frames.iter().map(|(frame, _)| frame);
    frames
        .map(|frame| match profile.symbols.nameless_start(frame) {
            Some(start) => vec![CompactCall { nameless_start: Some(start.0), ..CompactCall::default() }],
            None => profile.symbols.of(frame).iter().rev().map(|line| call(&profile, line)).collect(),
        })
        .collect()
}

/// Compares a table with its file at every address. Returns the sizes of both.
fn check(file: &Path) -> (usize, u64) {
    let bytes = CompactSymbols::of(file, ENOUGH).unwrap().to_bytes();
    let table = CompactSymbols::from_bytes(&bytes).unwrap();
    let addresses = addresses(file);
    let found = table.resolve(&addresses);
    for ((address, found), expected) in addresses.iter().zip(found).zip(expected(file, &addresses, true)) {
        assert_eq!(found, expected, "{address:#x} of {}", file.display());
    }
    (bytes.len(), file.metadata().unwrap().len())
}

fn stripped(folder: &Folder, file: &Path, flags: &[&str]) -> PathBuf {
    let out = folder.join("stripped");
    let mut arguments = flags.to_vec();
    arguments.extend(["-o", out.to_str().unwrap(), file.to_str().unwrap()]);
    run("strip", &arguments);
    out
}

#[test]
fn programs_in_c_plus_plus() {
    if !have(&["g++", "readelf", "strip"]) {
        return;
    }
    let folder = Folder::new("compact-cpp");
    for flags in [
        &["-O2", "-g"][..],
        &["-O2", "-g", "-gdwarf-4", "-ffunction-sections", "-Wl,--gc-sections", "-no-pie"],
        &["-O0", "-g", "-flto"],
        &["-O2", "-g1", "-static"],
        &["-O2"],
    ] {
        let program = build(&folder, "program", flags);
        check(&program);
        check(&stripped(&folder, &program, &["-g"]));
        check(&stripped(&folder, &program, &[]));
    }
}

#[test]
fn the_c_library_of_this_machine() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc =
        maps.lines().find_map(|line| line.split_whitespace().last().filter(|path| path.contains("libc.so")));
    let Some(libc) = libc else {
        return println!("skipped: this test is linked statically");
    };
    let (table, file) = check(Path::new(libc));
    assert!((table as u64) * 20 < file, "{table} of {file} bytes");
}

#[test]
fn programs_in_go_with_and_without_dwarf() {
    let (Some(go), true) = (go(), have(&["strip"])) else {
        return println!("skipped: no Go");
    };
    let folder = Folder::new("compact-go");
    let source = folder.join("main.go");
    std::fs::write(&source, "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n")
        .unwrap();
    for linker in ["-ldflags=", "-ldflags=-w", "-ldflags=-s -w"] {
        let program = folder.join("program");
        let mut command = Command::new(go);
        command.args(["build", linker, "-o"]).arg(&program).arg(&source);
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
        command.env("GOCACHE", shared.join("cache")).env("GOPATH", shared.join("path")).env("GOFLAGS", "");
        command.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local");
        assert!(command.status().unwrap().success());
        check(&program);
    }
}

#[test]
fn without_memory_names_come_from_symbols_alone() {
    if !have(&["g++"]) {
        return;
    }
    let folder = Folder::new("compact-memory");
    let program = build(&folder, "program", &["-O2", "-g"]);
    let table = CompactSymbols::of(&program, 1).unwrap();
    let addresses = addresses(&program);
    assert_eq!(table.resolve(&addresses), expected(&program, &addresses, false));
    assert_eq!(table.detail(), SymbolDetail::Functions, "a file with lines may replace it");
}

#[test]
fn damaged_bytes_are_refused_or_say_something_else() {
    if !have(&["g++"]) {
        return;
    }
    let folder = Folder::new("compact-damaged");
    let program = build(&folder, "program", &["-O2", "-g"]);
    let bytes = CompactSymbols::of(&program, ENOUGH).unwrap().to_bytes();
    let addresses: Vec<u64> = addresses(&program).into_iter().step_by(61).collect();
    assert_eq!(CompactSymbols::from_bytes(&std::fs::read(&program).unwrap()), Err(CompactError::Magic));
    for cut in 0..bytes.len() {
        assert!(CompactSymbols::from_bytes(&bytes[..cut]).is_err(), "{cut} bytes are a table");
    }
    for place in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 0x10;
        if let Ok(table) = CompactSymbols::from_bytes(&flipped) {
            table.resolve(&addresses);
        }
    }
    assert!(matches!(
        CompactSymbols::of(&folder.join("none"), ENOUGH),
        Err(plumb_symbolize::Missing::Absent { .. })
    ));
}
