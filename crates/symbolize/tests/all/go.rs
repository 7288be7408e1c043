//! Function names in stripped Go programs, compared with the symbols before stripping.
//!
//! Needs Go, nm and strip, and for one program a C compiler: if any is missing, a test says so and is skipped.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::truth::Folder;
use object::{Object, ObjectSection};
use plumb_fixtures::{Requirement, needs, probe::go};
use plumb_symbolize::Options;

const SOURCE: &str = "package main
import \"fmt\"
type Shape struct{ sides int }
//go:noinline
func (s *Shape) Count(of func(int) int) int { return of(s.sides) }
func main() { fmt.Println((&Shape{4}).Count(func(sides int) int { return sides * 2 })) }
";

/// Builds a Go program with these flags.
fn build(folder: &Folder, cgo: &str, flags: &[&str]) -> Option<PathBuf> {
    if !truth::have(&["nm", "strip", "gcc"]) {
        return None;
    }
    let (source, program) = (folder.join("main.go"), folder.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    if !needs(Requirement::Go) {
        return None;
    }
    let mut command = Command::new(go().expect("it was found"));
    command.args(["build", "-o"]).arg(&program).args(flags).arg(&source);
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    command.env("GOCACHE", shared.join("cache")).env("GOPATH", shared.join("path"));
    let status = command.env("CGO_ENABLED", cgo).env("GOTOOLCHAIN", "local").status();
    assert!(status.is_ok_and(|status| status.success()), "it builds");
    Some(program)
}

/// Returns Go's functions from nm: their addresses and names, without the suffix for the calling convention.
fn functions(program: &Path) -> BTreeMap<u64, Vec<String>> {
    let list = truth::run("nm", &["-n", "--defined-only", program.to_str().unwrap()]);
    let mut functions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let (mut inside, mut end) = (false, 0);
    for line in list.lines() {
        let fields: Vec<&str> = line.splitn(3, ' ').collect();
        let address = u64::from_str_radix(fields[0], 16).unwrap();
        inside |= fields[2] == "runtime.text";
        if fields[2] == "runtime.etext" {
            end = address;
        }
        // Symbols that are not functions.
        let is_mark = ["runtime.text", "runtime.etext", "go:buildid", "go:textfipsstart", "go:textfipsend"];
        if inside && end == 0 && matches!(fields[1], "t" | "T") && !is_mark.contains(&fields[2]) {
            functions.entry(address).or_default().push(fields[2].replace(".abi0", ""));
        }
    }
    functions
}

/// Compares the names in a stripped program with those of its symbols.
fn check(stripped: &Path, functions: &BTreeMap<u64, Vec<String>>) {
    let starts: Vec<u64> = functions.keys().copied().collect();
    let (mut profile, _) = truth::profile(stripped, None, &starts);
    let (found, _) = truth::resolve(&mut profile, &Options { lines: false, ..Options::default() });
    // The linker writes the middle dot of compiler-generated names as an ordinary dot.
    let name = |address| found.get(address)?.first().map(|(name, _, _)| name.replace('·', "."));
    let with_ours = functions.iter().map(|(address, names)| (name(address), address, names));
    let is_wrong = |(found, _, names): &(Option<String>, &u64, &Vec<String>)| {
        found.as_ref().is_none_or(|found| !names.contains(found))
    };
    let wrong: Vec<_> = with_ours.filter(is_wrong).collect();
    println!("{} of {} names differ", wrong.len(), functions.len());
    assert!(functions.len() > 1000);
    assert!(functions.values().flatten().any(|name| name == "main.(*Shape).Count"));
    assert!(wrong.is_empty(), "{:?}", &wrong[..wrong.len().min(10)]);
}

#[test]
fn stripped_programs_have_the_names_of_their_own_table() {
    let folder = Folder::new("go-stripped");
    let Some(program) = build(&folder, "0", &[]) else { return };
    let functions = functions(&program);
    truth::run("strip", &[program.to_str().unwrap()]);
    check(&program, &functions);
}

#[test]
fn stripped_programs_that_are_loaded_anywhere_have_names() {
    let folder = Folder::new("go-stripped-pie");
    let Some(program) = build(&folder, "1", &["-buildmode=pie", "-ldflags=-linkmode=external"]) else {
        return;
    };
    let functions = functions(&program);
    truth::run("strip", &[program.to_str().unwrap()]);
    check(&program, &functions);
}

#[test]
fn tables_of_older_versions_are_read() {
    let folder = Folder::new("go-older");
    let Some(program) = build(&folder, "0", &[]) else { return };
    let functions = functions(&program);
    truth::run("strip", &[program.to_str().unwrap()]);
    let data = std::fs::read(&program).unwrap();
    let text = object::File::parse(&*data).unwrap().section_by_name(".text").unwrap().address();
    for older in [as_of_1_18 as fn(&[u8], u64) -> Vec<u8>, as_of_1_16] {
        let (index, table) = {
            let file = object::File::parse(&*data).unwrap();
            let section = file.section_by_name(".gopclntab").unwrap();
            (section.index().0, section.data().unwrap().to_vec())
        };
        let mut changed = data.clone();
        let (offset, table) = (changed.len() as u64, older(&table, text));
        changed.extend(&table);
        let header = word(&changed, 40) as usize + 64 * index;
        changed[header + 24..header + 32].copy_from_slice(&offset.to_le_bytes());
        changed[header + 32..header + 40].copy_from_slice(&(table.len() as u64).to_le_bytes());
        let path = folder.join("older");
        std::fs::write(&path, changed).unwrap();
        check(&path, &functions);
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Rewrites the table as Go 1.18 wrote it (runtime/symtab.go of that version), which states the start of the code.
fn as_of_1_18(table: &[u8], text: u64) -> Vec<u8> {
    let mut table = table.to_vec();
    table[..4].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    table[24..32].copy_from_slice(&text.to_le_bytes());
    table
}

/// Rewrites the table as Go 1.16 wrote it (runtime/symtab.go of that version), with names only: addresses of eight bytes, in the function list and in
/// entries, and no field for the start of the code.
fn as_of_1_16(table: &[u8], text: u64) -> Vec<u8> {
    let (count, names, files, list) =
        (word(table, 8), word(table, 32) as usize, word(table, 40) as usize, word(table, 64) as usize);
    let names = &table[names..files];
    let list = &table[list..];
    let mut new = Vec::new();
    new.extend(0xffff_fffa_u32.to_le_bytes());
    new.extend([0, 0, 1, 8]);
    let behind = 64 + names.len() as u64;
    for number in [count, 0, 64, behind, behind, behind, behind] {
        new.extend(number.to_le_bytes());
    }
    new.extend(names);
    let mut entries = Vec::new();
    for index in 0..=count as usize {
        let start = text + u64::from(half(list, 8 * index));
        new.extend(start.to_le_bytes());
        if index < count as usize {
            new.extend((16 * count + 8 + entries.len() as u64).to_le_bytes());
            entries.extend(start.to_le_bytes());
            entries.extend(half(list, half(list, 8 * index + 4) as usize + 4).to_le_bytes());
            entries.extend([0; 4]);
        }
    }
    new.extend(entries);
    new
}
