//! Compares every row of call-frame information in real files with gimli's.
//!
//! For each row that gimli finds, the CFA rule and the rules of all registers are compared at the row's first and
//! last address. FDEs are looked up in both ways: with the linker's table, and with the index that is built without
//! it.

mod elf;
mod gimli_rows;

use std::path::{Path, PathBuf};

use gimli::{LittleEndian, UnwindSection};
use gimli_rows::Slice;
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::{Module, Sections, Svma};

/// Files that Linux development machines have, each of another kind (C, C++, hand-written, PLT), and the step by
/// which FDEs are sampled.
const FILES: [(&str, usize); 12] = [
    ("/bin/ls", 1),
    ("/bin/bash", 1),
    ("/lib64/ld-linux-x86-64.so.2", 1),
    ("/lib/x86_64-linux-gnu/libc.so.6", 1),
    ("/lib/x86_64-linux-gnu/libm.so.6", 1),
    ("/lib/x86_64-linux-gnu/libgcc_s.so.1", 1),
    ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 1),
    ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 1),
    ("/usr/bin/python3", 1),
    ("/usr/bin/node", 7),
    ("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", 5),
    ("/usr/lib/llvm-19/lib/libLLVM-19.so", 17),
];

#[derive(Default)]
struct Counts {
    rows: u64,
    wrong: Vec<String>,
}

/// Compares the rows of every `step`th FDE.
fn compare<'a, S>(
    section: &S,
    bases: &gimli::BaseAddresses,
    module: &Module<Vec<u8>>,
    step: usize,
    counts: &mut Counts,
) where
    S: UnwindSection<Slice<'a>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut context = gimli::UnwindContext::new();
    let mut number = 0;
    gimli_rows::each_fde(section, bases, |fde| {
        number += 1;
        if number % step != 0 || fde.len() == 0 || fde.initial_address() == 0 {
            return;
        }
        let mut rows = fde.rows(section, bases, &mut context).expect("gimli reads the CIE");
        while let Some(row) = rows.next_row().expect("gimli runs the instructions") {
            if row.start_address() >= row.end_address() {
                continue;
            }
            counts.rows += 1;
            for pc in [row.start_address(), row.end_address() - 1] {
                let ours = match module.row(Svma(pc)) {
                    Ok(Some(ours)) => ours,
                    other => {
                        counts.wrong.push(format!("{pc:#x}: {other:?}"));
                        continue;
                    }
                };
                let mut same =
                    ours.cfa == gimli_rows::cfa(row) && ours.is_signal == fde.is_signal_trampoline();
                // gimli splits a row into two equal ones if an instruction advances by 0.
                same &= ours.range.contains(&Svma(pc));
                for register in 0..17 {
                    same &= ours.register(register) == gimli_rows::register(row, register);
                }
                if !same {
                    counts.wrong.push(format!("{pc:#x}: {ours:?} but gimli says {row:?}"));
                }
            }
        }
    });
}

fn check(path: &Path, step: usize, with_table: bool) -> Option<Counts> {
    let data = std::fs::read(path).ok()?;
    let mut sections = elf::sections(&data)?;
    if !with_table {
        sections.eh_frame_hdr = None;
    }
    let bases = gimli_rows::bases(&sections);
    let mut counts = Counts::default();
    if let Some(section) = sections.eh_frame.clone() {
        let module = Module::new(Sections { debug_frame: None, ..sections.clone() });
        compare(&gimli::EhFrame::new(&section.bytes, LittleEndian), &bases, &module, step, &mut counts);
    }
    if let Some(section) = sections.debug_frame.clone() {
        let module = Module::new(Sections { eh_frame: None, ..sections });
        compare(&gimli::DebugFrame::new(&section.bytes, LittleEndian), &bases, &module, step, &mut counts);
    }
    Some(counts)
}

#[test]
fn rows_equal_gimli() {
    let mut files = 0;
    let full = std::env::var_os("PLUMB_DIFFERENTIAL_FULL").is_some();
    for (name, step) in FILES {
        let step = if full { 1 } else { step };
        for with_table in [true, false] {
            let Some(counts) = check(&PathBuf::from(name), step, with_table) else {
                skip(Requirement::Files, format_args!("{name}: not on this machine"));
                break;
            };
            files += 1;
            println!("{name} (table: {with_table}): {} rows, {} wrong", counts.rows, counts.wrong.len());
            let shown: Vec<_> = counts.wrong.iter().take(5).collect();
            assert!(shown.is_empty(), "{name}: {shown:#?}");
            assert!(counts.rows > 0, "{name} has no rows");
        }
    }
    assert!(files > 0, "none of the files is on this machine");
}

/// A file with only `.debug_frame`, as produced by assemblers and by `-fno-asynchronous-unwind-tables -g`.
#[test]
fn debug_frame_alone() {
    let directory = std::env::temp_dir().join(format!("plumb-debug-frame-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, output) = (directory.join("a.c"), directory.join("a.so"));
    std::fs::write(
        &source,
        "int f(int); int g(int x) { return f(x) + f(x + 1) + x; } int h(int x) { return g(x) + 1; }",
    )
    .unwrap();
    let flags = [
        "-O2",
        "-g",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let status = std::process::Command::new("gcc").args(flags).arg("-o").arg(&output).arg(&source).status();
    if status.is_err() {
        skip(Requirement::Cc, "gcc is not on this machine");
        return;
    }
    let data = std::fs::read(&output).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let mut sections = elf::sections(&data).unwrap();
    assert!(sections.debug_frame.is_some());
    // The remaining `.eh_frame` describes the PLT.
    sections.eh_frame = None;
    let bases = gimli_rows::bases(&sections);
    let bytes = sections.debug_frame.clone().unwrap().bytes;
    let module = Module::new(sections);
    let mut counts = Counts::default();
    compare(&gimli::DebugFrame::new(&bytes, LittleEndian), &bases, &module, 1, &mut counts);
    assert!(counts.wrong.is_empty(), "{:#?}", counts.wrong);
    assert!(counts.rows > 4, "{}", counts.rows);
}
