//! Compares every row of call-frame information in real aarch64 files with gimli's.

mod elf;
mod gimli_rows;

use std::path::Path;
use std::process::Command;

use gimli::LittleEndian;
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::aarch64::{Aarch64, COUNT, PC, X30};
use plumb_unwind::table::{Lookup, Table};
use plumb_unwind::{CfaRule, Module, RegisterRule, Rule, Svma};

/// Library directory of Debian's cross compilers.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu/lib";
const FILES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "libgcc_s.so.1", "libstdc++.so.6"];

/// Compares all rows of a file and returns their number.
fn check(data: &[u8]) -> usize {
    let sections = elf::sections(data).expect("an ELF file");
    let bases = gimli_rows::bases(&sections);
    let bytes = sections.eh_frame.clone().expect("it has rules").bytes;
    let mut section = gimli::EhFrame::new(&bytes, LittleEndian);
    section.set_vendor(gimli::Vendor::AArch64);
    let module = Module::new(sections);
    let table = Table::of_all(&module).expect("a table is made");
    let table = Table::from_bytes(&table.to_bytes()).expect("what was written is read");
    let mut context = gimli::UnwindContext::new();
    let mut count = 0;
    gimli_rows::each_fde(&section, &bases, |fde| {
        let mut rows = fde.rows(&section, &bases, &mut context).expect("gimli reads the CIE");
        while let Some(row) = rows.next_row().expect("gimli runs the instructions") {
            if row.start_address() >= row.end_address() {
                continue;
            }
            count += 1;
            let at = row.start_address();
            let ours = module.row(Svma(at)).expect("no error").unwrap_or_else(|| panic!("no row at {at:#x}"));
            // gimli cannot distinguish `x0` without offset (used in `longjmp`) from an undefined CFA.
            let cfa = match gimli_rows::cfa(row) {
                CfaRule::Undefined => CfaRule::Register { register: 0, offset: 0 },
                cfa => cfa,
            };
            let mut same = ours.cfa == cfa && ours.is_signal == fde.is_signal_trampoline();
            for register in 0..COUNT {
                // In a row, the rule of the link register is stored as that of the return address.
                let expected = match register {
                    X30 => RegisterRule::Unspecified,
                    PC => gimli_rows::register(row, X30),
                    other => gimli_rows::register(row, other),
                };
                same &= ours.register(register) == expected;
            }
            assert!(same, "{at:#x}: {ours:?} but gimli says {row:?}");
            let expected = match Rule::compact_for::<Aarch64>(&ours) {
                Some(rule) => Lookup::Rule(rule),
                None => Lookup::Odd,
            };
            for at in [at, row.end_address() - 1] {
                assert_eq!(table.lookup(Svma(at)), expected, "{at:#x}: {ours:?}");
            }
        }
    });
    count
}

#[test]
fn rows_equal_gimli() {
    for name in FILES {
        let path = Path::new(LIBRARIES).join(name);
        let Ok(data) = std::fs::read(&path) else {
            skip(Requirement::Cross, format_args!("{} is not on this machine", path.display()));
            continue;
        };
        let count = check(&data);
        println!("{name}: {count} rows");
        assert!(count > 50, "{name}: {count}");
    }
}

/// Code that signs its return addresses marks where it does.
#[test]
fn rows_of_signing_code_equal_gimli() {
    let directory = std::env::temp_dir().join(format!("plumb-aarch64-rows-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, output) = (directory.join("a.c"), directory.join("a.so"));
    let text =
        "int f(int); int g(int x) { return f(x) + f(x + 1) + x; } int h(int x) { return x ? g(x) + 1 : x; }";
    std::fs::write(&source, text).unwrap();
    let flags = ["-O2", "-shared", "-fPIC", "-nostdlib", "-mbranch-protection=standard"];
    let status =
        Command::new("aarch64-linux-gnu-gcc").args(flags).arg("-o").arg(&output).arg(&source).status();
    let data = std::fs::read(&output);
    std::fs::remove_dir_all(&directory).unwrap();
    if status.is_err() {
        skip(Requirement::Cross, "aarch64-linux-gnu-gcc is not on this machine");
        return;
    }
    let data = data.unwrap();
    let bytes = elf::sections(&data).unwrap().eh_frame.unwrap().bytes;
    assert!(bytes.contains(&0x2d), "it has DW_CFA_AARCH64_negate_ra_state");
    assert!(check(&data) > 5);
}
