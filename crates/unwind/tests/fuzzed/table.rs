//! Tables for callers: random bytes load or are refused, and a table of generated call-frame information equals its
//! rows.

use plumb_unwind::rule::Kind;
use plumb_unwind::table::{Lookup, Table};
use plumb_unwind::{Module, Section, Sections, Svma};

use super::Source;
use super::program::{self, CODE, SIZE, TABLE};

/// Loads the bytes as a table, and builds a table of a program generated from them.
pub fn run(data: &[u8]) {
    if let Ok(table) = Table::from_bytes(data) {
        assert_eq!(table.to_bytes(), data, "written again");
        for at in 0..64 {
            std::hint::black_box(table.lookup(Svma(at * 0x1357)));
        }
    }
    let mut source = Source(data);
    let made = program::make(&mut source);
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let module = Module::new(Sections {
        eh_frame: section(program::frames_at(), &*made.eh_frame),
        eh_frame_hdr: section(TABLE, &*made.eh_frame_hdr),
        ..Sections::default()
    });
    let Ok(table) = Table::of_all(&module) else { return };
    let by_length = Table::by_length(&module).expect("another table was made");
    for (start, _) in by_length.iter() {
        assert_eq!(by_length.lookup(start), table.lookup(start), "{start:?}: by length");
    }
    let again = Table::from_bytes(&table.to_bytes()).expect("what was written loads");
    for pc in CODE..CODE + made.functions * SIZE + 16 {
        let found = table.lookup(Svma(pc));
        assert_eq!(found, again.lookup(Svma(pc)), "{pc:#x}: loaded again");
        match (found, module.row(Svma(pc))) {
            (Lookup::Rule(rule), Ok(None)) => assert_eq!(rule.kind, Kind::MissingHere, "{pc:#x}"),
            (Lookup::Rule(rule), Ok(Some(row))) => {
                assert_eq!(plumb_unwind::Rule::compact(&row), Some(rule), "{pc:#x}: {row:?}");
            }
            (Lookup::Odd | Lookup::Absent, _) => {}
            (found, row) => panic!("{pc:#x}: {found:?}, but {row:?}"),
        }
    }
}
