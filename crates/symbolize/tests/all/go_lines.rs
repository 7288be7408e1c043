//! Lines and inlined calls of stripped Go programs, compared with those that Go's runtime reports in the program itself.
//!
//! Needs Go and binutils, and for one program a C compiler: if any is missing, a test says so and is skipped.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::truth::{Chain, Folder};
use object::{Object, ObjectSection, ObjectSegment};
use plumb_fixtures::{Requirement, needs, probe::go};
use plumb_symbolize::Options;

/// Returns the Go versions to test: the installed one, or those in this variable, which Go downloads, such as
/// `go1.16.15,go1.18.10,go1.20.14,go1.24.0`.
fn toolchains() -> Vec<String> {
    let named = std::env::var("PLUMB_GO_TOOLCHAINS").unwrap_or("local".into());
    named.split(',').map(str::to_owned).collect()
}

/// Builds the program that reports its own addresses, with these flags.
fn build(folder: &Folder, toolchain: &str, cgo: &str, flags: &[&str]) -> PathBuf {
    let program = folder.join("program");
    let minor: Option<u32> = toolchain.split('.').nth(1).and_then(|minor| minor.parse().ok());
    let mut command = Command::new(go().expect("it was found"));
    // The program calls a runtime function that is not meant for programs.
    let check = if minor.is_none_or(|minor| minor >= 23) { " -checklinkname=0" } else { "" };
    let linker = flags.iter().filter_map(|flag| flag.strip_prefix("-ldflags=")).collect::<String>();
    let flags = flags.iter().filter(|flag| !flag.starts_with("-ldflags="));
    command.args(["build", "-o"]).arg(&program).args(flags);
    command.arg(format!("-ldflags={linker}{check}")).arg(".");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/go_frames"));
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    command.env("GOCACHE", shared.join("cache")).env("GOPATH", shared.join("path"));
    let flags = if minor.is_none_or(|minor| minor >= 18) { "-buildvcs=false" } else { "-trimpath" };
    command.env("GOFLAGS", flags).env("CGO_ENABLED", cgo).env("GOTOOLCHAIN", toolchain);
    assert!(command.status().is_ok_and(|status| status.success()), "it builds");
    program
}

fn strip(folder: &Folder, program: &Path) -> PathBuf {
    let stripped = folder.join("stripped");
    truth::run("strip", &["-o", stripped.to_str().unwrap(), program.to_str().unwrap()]);
    stripped
}

/// Returns this crate's results for the addresses.
fn ours(program: &Path, addresses: &[u64]) -> BTreeMap<u64, Chain> {
    let (mut profile, _) = truth::profile(program, None, addresses);
    let options = Options { debug_roots: Vec::new(), cache: None, ..Options::default() };
    let (found, summary) = truth::resolve(&mut profile, &options);
    assert_eq!(summary.dsos[0].missing, [], "nothing is missing");
    found
}

/// Returns the results of Go's runtime for the addresses.
fn by_runtime(program: &Path, addresses: &[u64]) -> BTreeMap<u64, Chain> {
    let file = fs::read(program).unwrap();
    let lowest = object::File::parse(&*file).unwrap().segments().map(|segment| segment.address()).min();
    let mut child = Command::new(program)
        .arg(format!("{:x}", lowest.unwrap()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().unwrap();
    let list: String = addresses.iter().map(|address| format!("{address:x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(list.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut chains = text.split("\n\n").map(|chain| {
        let frames = chain.lines().filter(|line| !line.is_empty()).map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[0].to_owned(), fields[1].to_owned(), fields[2].parse().unwrap())
        });
        frames.collect()
    });
    addresses.iter().map(|&address| (address, chains.next().unwrap())).collect()
}

/// Whether two frames are equal except for intended differences:
/// - The runtime prints `[...]` for type arguments, and nothing for the first name in the table.
/// - The runtime writes names as the compiler does, with a middle dot, and without the calling convention that the linker's symbols have.
/// - Between functions, where there is no line, the runtime prints `?` for the file.
fn same((ours, theirs): (&(String, String, u32), &(String, String, u32))) -> bool {
    let own = ours.0.replace('·', ".");
    let own = own.trim_end_matches(".abi0");
    let their_name = theirs.0.replace('·', ".");
    let name = match (own.find('['), own.rfind(']')) {
        (Some(open), Some(close)) => format!("{}[...]{}", &own[..open], &own[close + 1..]),
        _ => own.to_owned(),
    };
    let file = if ours.1.is_empty() { "?" } else { &ours.1 };
    (name == their_name || own == their_name || theirs.0.is_empty()) && file == theirs.1 && ours.2 == theirs.2
}

/// Compares a program without DWARF, stripped or not, with its own output.
fn check(folder: &str, cgo: &str, flags: &[&str], is_stripped: bool) {
    if !truth::have(&["strip", "readelf"]) || !needs(Requirement::Go) {
        return;
    }
    // Before Go 1.26 a C linker puts the table of such a program among other data.
    let is_left = |toolchain: &String| cgo == "0" || toolchain == "local";
    for toolchain in toolchains().into_iter().filter(is_left) {
        let folder = Folder::new(folder);
        let program = build(&folder, &toolchain, cgo, flags);
        let asked = if is_stripped { strip(&folder, &program) } else { program.clone() };
        println!("{toolchain} {flags:?}: {}", compare(&asked, &program));
    }
}

fn compare(asked: &Path, program: &Path) -> String {
    // If the next byte is the first of a function, the runtime attributes the address to that function.
    let addresses = truth::text(program).into_iter().step_by(5).filter(|address| address % 16 != 15);
    let addresses: Vec<u64> = addresses.collect();
    let (ours, theirs) = (ours(asked, &addresses), by_runtime(program, &addresses));
    let (mut inlined, mut lined, mut wrapped, mut wrong) = (0, 0, 0, Vec::new());
    for address in &addresses {
        let (ours, theirs) = (&ours[address], &theirs[address]);
        inlined += usize::from(ours.len() > 1);
        lined += usize::from(ours.iter().any(|frame| frame.2 > 0));
        let is_prefix = ours.iter().zip(theirs).all(same);
        match (ours.len(), theirs.len()) {
            (0 | 1, 1) if theirs[0].1.is_empty() => {} // Not a function of Go's.
            (ours, theirs) if is_prefix && ours == theirs => {}
            // The runtime omits inlined functions that only wrap others.
            (ours, theirs) if is_prefix && ours == theirs + 1 => wrapped += 1,
            _ => wrong.push((address, ours, theirs)),
        }
    }
    let all = addresses.len();
    assert!(wrong.is_empty(), "{} of {all}: {:x?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    assert!(inlined * 10 > all && lined * 10 > all * 9 && wrapped * 100 < all);
    format!("{all} alike, {inlined} with inlined calls, {lined} with lines, {wrapped} in a wrapper")
}

#[test]
fn stripped_programs_have_the_lines_and_inlined_calls_of_the_runtime() {
    check("go-lines", "0", &[], true);
}

#[test]
fn programs_with_symbols_and_without_dwarf_have_them_too() {
    check("go-lines-w", "0", &["-ldflags=-w"], false);
}

#[test]
fn stripped_programs_that_are_loaded_anywhere_have_them_too() {
    check("go-lines-pie", "0", &["-buildmode=pie"], true);
}

#[test]
fn stripped_programs_that_a_c_linker_put_together_have_them_too() {
    if truth::have(&["gcc"]) {
        check("go-lines-external", "1", &["-buildmode=pie", "-ldflags=-linkmode=external"], true);
    }
}

/// Damaged tables must cause neither a panic nor a long run time.
#[test]
fn damaged_tables_are_survived() {
    if !truth::have(&["strip", "readelf"]) || !needs(Requirement::Go) {
        return;
    }
    let folder = Folder::new("go-damaged");
    let stripped = strip(&folder, &build(&folder, "local", "0", &[]));
    let whole = fs::read(&stripped).unwrap();
    let addresses: Vec<u64> = truth::text(&stripped).into_iter().step_by(1001).collect();
    let file = object::File::parse(&*whole).unwrap();
    let section = |name| file.section_by_name(name).and_then(|section| section.file_range());
    let parts: Vec<(u64, u64)> =
        [".gopclntab", ".go.module", ".noptrdata", ".rodata"].into_iter().filter_map(section).collect();
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut number = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut lined = 0;
    for round in 0..80 {
        let mut bytes = whole.clone();
        let (start, size) = parts[round % parts.len()];
        // Damages the header, or anything.
        let size = if round % 8 == 0 { 72 } else { size };
        for _ in 0..1 + number(if size == 72 { 3 } else { 20_000 }) {
            let at = start + number(size);
            bytes[at as usize] = [0, 0xff, 0x7f, 0x80, number(256) as u8][number(5) as usize];
        }
        let damaged = folder.join("damaged");
        fs::write(&damaged, bytes).unwrap();
        let (mut profile, _) = truth::profile(&damaged, None, &addresses);
        let options = Options { debug_roots: Vec::new(), cache: None, ..Options::default() };
        let (_, summary) = truth::resolve(&mut profile, &options);
        let failed =
            summary.dsos[0].missing.iter().any(|missing| missing.to_string().contains("parser failed"));
        assert!(!failed && summary.dsos[0].seconds < 20.0, "round {round}: {:?}", summary.dsos[0]);
        lined += summary.dsos[0].lined;
    }
    println!("{lined} lines of {}", 80 * addresses.len());
    assert!(lined > addresses.len(), "what is not damaged is read");
}
