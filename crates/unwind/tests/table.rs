//! Compares tables for callers with rows, at every address that the tables may be asked about.
//!
//! The rows come from gimli, and the addresses after calls from a disassembler.

mod bytes;
mod calls;
mod elf;
mod gimli_rows;

use std::path::Path;

use bytes::{FUNCTION, Frames, USUAL, absolute};
use gimli::LittleEndian;
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::{LoadError, Lookup, Table};
use plumb_unwind::{CfaRule, Isa, Module, RegisterRule, Sections, Svma};

const RBP: u16 = 6;
const RSP: u16 = 7;
const RDX: u16 = 1;
const RIP: u16 = 16;

/// Files that Linux development machines have: C, C++, Rust, JIT compilers, hand-written assembly; functions with and
/// without frame pointers.
const FILES: [&str; 11] = [
    "/bin/bash",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/bin/python3.11",
    "/usr/bin/node",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
    "/usr/lib/llvm-19/lib/libLLVM-19.so",
    "librustc_driver",
];

/// Returns the expected lookup result for a gimli row.
fn expected(row: &gimli::UnwindTableRow<usize>, is_signal: bool) -> Lookup {
    let register = |register| gimli_rows::register(row, register);
    let ra = register(RIP);
    if ra == RegisterRule::Undefined && !is_signal {
        return Lookup::Rule(Rule::only(Kind::Root));
    }
    let (kind, offset) = match gimli_rows::cfa(row) {
        CfaRule::Register { register: RSP, offset } if offset >= 8 => (Kind::Sp, offset),
        CfaRule::Register { register: RBP, offset } => (Kind::Fp, offset),
        _ => return Lookup::Odd,
    };
    let fp = match register(RBP) {
        RegisterRule::Unspecified | RegisterRule::SameValue => 0,
        RegisterRule::Offset(offset) if offset % 8 == 0 && offset != 0 => (offset / 8) as i16,
        _ => return Lookup::Odd,
    };
    let sp_is_usual = matches!(register(RSP), RegisterRule::Unspecified | RegisterRule::ValOffset(0));
    if is_signal || ra != RegisterRule::Offset(-8) || !sp_is_usual {
        return Lookup::Odd;
    }
    // libgcc's unwinder on the stack of an exception's handler: what is above is not a return address.
    if matches!(register(RDX), RegisterRule::Offset(_)) && (kind, offset, fp) == (Kind::Sp, 8, 0) {
        return Lookup::Odd;
    }
    Lookup::Rule(Rule { kind, ra: -1, fp, value: offset as i32 })
}

/// A file under test.
struct File {
    data: Vec<u8>,
    sections: Sections<Vec<u8>>,
}

impl File {
    fn open(name: &str) -> Option<File> {
        let path = if name == "librustc_driver" { driver()? } else { name.into() };
        let data = std::fs::read(Path::new(&path)).ok()?;
        let sections = elf::sections(&data)?;
        Some(File { data, sections })
    }

    /// Calls `visit` with each row and the addresses after calls in it.
    fn each_row(&self, mut visit: impl FnMut(std::ops::Range<u64>, Lookup, &[u64])) {
        let section = self.sections.eh_frame.as_ref().expect("each file has the section");
        let (frames, bases) =
            (gimli::EhFrame::new(&section.bytes, LittleEndian), gimli_rows::bases(&self.sections));
        let code = calls::code(&self.data);
        let mut context = gimli::UnwindContext::new();
        gimli_rows::each_fde(&frames, &bases, |fde| {
            // A linker that discards a function may leave its entry, with address 0.
            if fde.len() == 0 || fde.initial_address() == 0 {
                return;
            }
            let returns = calls::returns(&code, fde.initial_address()..fde.end_address());
            let mut rows = fde.rows(&frames, &bases, &mut context).expect("gimli reads the CIE");
            while let Some(row) = rows.next_row().expect("gimli runs the instructions") {
                let range = row.start_address()..row.end_address();
                let begin = returns.partition_point(|&after| after <= range.start);
                let end = returns.partition_point(|&after| after <= range.end);
                if !range.is_empty() {
                    visit(range, expected(row, fde.is_signal_trampoline()), &returns[begin..end]);
                }
            }
        });
    }
}

/// Returns the path of the compiler that builds this test. It was optimized after linking.
fn driver() -> Option<String> {
    let sysroot = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let library = format!("{}/lib", String::from_utf8(sysroot.stdout).ok()?.trim());
    let mut files = std::fs::read_dir(library).ok()?.flatten().map(|file| file.path().display().to_string());
    files.find(|path| path.contains("librustc_driver-"))
}

fn each_file(mut check: impl FnMut(&str, &File)) {
    let mut files = 0;
    for name in FILES {
        match File::open(name) {
            Some(file) => {
                check(name, &file);
                files += 1;
            }
            None => skip(Requirement::Files, format_args!("{name}: not on this machine")),
        }
    }
    assert!(files > 0, "none of the files is on this machine");
}

#[test]
fn the_table_of_all_rows_says_what_gimli_says() {
    each_file(|name, file| {
        let module = Module::new(file.sections.clone());
        let table = Table::of_all(&module).unwrap();
        let mut rows = 0;
        file.each_row(|range, expected, _| {
            for address in [range.start, range.end - 1] {
                assert_eq!(table.lookup(Svma(address)), expected, "{name}: {address:#x}");
            }
            rows += 1;
        });
        println!("{name}: {rows} rows, {} in the table", table.rows());
        assert!(rows > 0);
    });
}

/// Compares a table with all rows, at the addresses after calls.
fn check_after_calls(name: &str, file: &File, table: &Table) {
    let table = Table::from_bytes(&table.to_bytes()).expect("what was written is read");
    let (mut calls, mut wrong) = (0, Vec::new());
    file.each_row(|_, expected, returns| {
        calls += returns.len();
        let is_wrong = |after: &&u64| table.lookup(Svma(**after - 1)) != expected;
        wrong.extend(returns.iter().filter(is_wrong).map(|after| format!("{after:#x}: {expected:?}")));
    });
    println!("{name}: {calls} calls, {} wrong, {} rows, {} bytes", wrong.len(), table.rows(), table.size());
    let shown = wrong.iter().take(10).collect::<Vec<_>>();
    assert!(shown.is_empty(), "{name}: {shown:#?}");
    assert!(calls > 0);
}

#[test]
fn tables_by_length_are_right_after_every_call() {
    each_file(|name, file| {
        let table = Table::by_length(&Module::new(file.sections.clone())).unwrap();
        check_after_calls(name, file, &table);
    });
}

#[test]
fn tables_of_calls_are_right_after_every_call() {
    each_file(|name, file| {
        let module = Module::new(file.sections.clone());
        let table = Table::of_calls(&module, &mut calls::code(&file.data)[..]).unwrap();
        check_after_calls(name, file, &table);
        // Reading the code must pay off: `by_length` needs no code, so the table must be smaller.
        assert!(table.rows() < Table::by_length(&module).unwrap().rows(), "{name}");
    });
}

/// Returns libraries and programs of this machine.
fn system_files() -> Vec<std::path::PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/bin"];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<_> = files.filter_map(|file| file.path().canonicalize().ok()).collect();
    files.extend(FILES.iter().map(Into::into).filter(|path: &std::path::PathBuf| path.is_file()));
    files.sort();
    files.dedup();
    files
}

/// Compares every seventh row of a table with the decoder of single rows, at the row's start.
fn check_rows(module: &Module<Vec<u8>>, table: &Table, path: &Path) {
    for (start, _) in table.iter().step_by(7) {
        let single = module.row(start);
        let is_right = match (table.lookup(start), &single) {
            (Lookup::Rule(rule), Ok(Some(row))) => Rule::compact(row) == Some(rule),
            (Lookup::Rule(rule), Ok(None)) => rule == Rule::only(Kind::MissingHere),
            (Lookup::Odd, Ok(Some(row))) => Rule::compact(row).is_none(),
            // Functions overlap, or something is damaged.
            (Lookup::Odd, Ok(None) | Err(_)) => true,
            _ => false,
        };
        let found = table.lookup(start);
        assert!(is_right, "{}: {start:?}: {found:?}, but {single:?}", path.display());
    }
}

#[test]
fn tables_of_all_files_say_what_single_rows_say() {
    let (mut same, mut rows) = (0, 0);
    for path in system_files() {
        let head = std::fs::File::open(&path).and_then(|mut file| {
            let mut head = [0; 4];
            std::io::Read::read_exact(&mut file, &mut head).map(|()| head)
        });
        if !head.is_ok_and(|head| head == *b"\x7fELF") {
            continue;
        }
        let Some(data) = std::fs::read(&path).ok() else { continue };
        let Some(sections) = elf::sections(&data) else { continue };
        let module = Module::new(sections);
        // In an object file all functions begin at the same addresses.
        let is_object = data.get(16..18) == Some(&[1, 0]);
        if module.sections().isa != Isa::X86_64 || is_object {
            continue;
        }
        let Ok(all) = Table::of_all(&module) else { continue };
        check_rows(&module, &all, &path);
        let mut code = calls::code(&data);
        for table in [Table::by_length(&module), Table::of_calls(&module, &mut code[..])] {
            let table = table.expect("a table of all rows was made");
            let is_wrong = |&(start, _): &(Svma, Rule)| table.lookup(start) != all.lookup(start);
            assert_eq!(table.iter().find(is_wrong), None, "{}: {:?}", path.display(), table.content());
        }
        (same, rows) = (same + 1, rows + all.rows());
    }
    println!("{same} files with {rows} rows");
    assert!(same > 0, "no file of this machine has a table");
}

#[test]
fn rows_are_where_lookups_find_them() {
    let Some(file) = File::open("/usr/bin/python3.11") else {
        skip(Requirement::Files, "no python on this machine");
        return;
    };
    let table = Table::of_all(&Module::new(file.sections)).unwrap().with_build_id(b"of this file");
    assert!(table.is_of(b"of this file") && !table.is_of(b"of another"));
    let rows: Vec<_> = table.iter().collect();
    assert_eq!(rows.len(), table.rows());
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
    for (address, rule) in rows {
        let odd = rule == Rule::only(Kind::Odd);
        assert_eq!(table.lookup(address), if odd { Lookup::Odd } else { Lookup::Rule(rule) }, "{address:?}");
    }
}

/// No linker writes such a section, but damaged files have it.
#[test]
fn a_function_that_goes_on_for_ever_holds_what_is_between_others() {
    let mut frames = Frames::default();
    let cie = frames.cie("zR", &[0], USUAL);
    frames.fde(cie, &absolute(FUNCTION, u64::MAX - FUNCTION), Some(&[]), &[0x07, 16]);
    frames.fde(cie, &absolute(FUNCTION + 0x100, 0x10), Some(&[]), &[]);
    frames.fde(cie, &absolute(FUNCTION + 0x200, 0x10), Some(&[]), &[]);
    let module = frames.module();
    let table = Table::of_all(&module).expect("a table is made");
    for at in (FUNCTION..FUNCTION + 0x300).step_by(4) {
        let row = module.row(Svma(at)).expect("rows can be read").expect("there is one");
        if let Lookup::Rule(rule) = table.lookup(Svma(at)) {
            assert_eq!(Some(rule), Rule::compact(&row), "{at:#x}");
        }
    }
    let between = table.lookup(Svma(FUNCTION + 0x100));
    assert_eq!(
        between,
        Lookup::Rule(Rule::compact(&module.row(Svma(FUNCTION + 0x100)).unwrap().unwrap()).unwrap())
    );
}

/// Arbitrary bytes give an error or a table that answers every lookup.
#[test]
fn damaged_tables_are_refused_or_answer() {
    let Some(file) = File::open("/lib64/ld-linux-x86-64.so.2") else {
        skip(Requirement::Files, "no loader on this machine");
        return;
    };
    let whole = Table::by_length(&Module::new(file.sections)).unwrap().to_bytes();
    assert_eq!(Table::from_bytes(b"no table").err(), Some(LoadError::NotATable));
    assert_eq!(Table::from_bytes(&whole[..whole.len() - 1]).err(), Some(LoadError::Truncated));
    assert_eq!(Table::from_bytes(&[whole.clone(), vec![0]].concat()).err(), Some(LoadError::Truncated));
    let changed = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Table::from_bytes(&bytes)
    };
    assert_eq!(changed(8, 9).err(), Some(LoadError::OtherVersion(9)));
    assert_eq!(changed(13, 1).err(), Some(LoadError::OtherArchitecture(1)));
    let mut refused = 0;
    for at in 0..whole.len() {
        match changed(at, 0xff) {
            Ok(table) => (0..64).for_each(|step| {
                assert!(table.lookup(Svma(step << 12)) != Lookup::Rule(Rule::only(Kind::Odd)))
            }),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 100, "{refused}");
    // The last row refers to a rule that does not exist.
    let end = whole.len();
    let mut bytes = whole.clone();
    bytes[end - 4..end - 2].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(Table::from_bytes(&bytes).err(), Some(LoadError::Damaged("rows")));
}
