//! Tables of any bytes as sections say what single rows say, or none; any bytes as a table are refused or answer.

use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::{Content, Lookup, Table};
use plumb_unwind::{Module, Section, Sections, Svma};

const CODE: u64 = 0x1000;

/// The first four bytes say which sections the rest is, and where to look; see `seeded`.
pub fn run(data: &[u8]) {
    let Some((&[shape, split, pc_low, pc_high], rest)) = data.split_first_chunk() else { return };
    let asked = u64::from(pc_low) | u64::from(pc_high) << 8;
    if shape & 0x80 != 0 {
        return load(rest, asked);
    }
    let (header, body) = rest.split_at(if shape & 4 != 0 { rest.len().min(split.into()) } else { 0 });
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let mut sections = Sections { text: Some(Svma(CODE)), got: Some(Svma(0x2000)), ..Sections::default() };
    if shape & 1 != 0 {
        sections.eh_frame = section(CODE, body);
    }
    if shape & 2 != 0 {
        sections.debug_frame = section(0, body);
    }
    if shape & 4 != 0 {
        sections.eh_frame_hdr = section(0x800, header);
    }
    let module = Module::new(sections);
    let Ok(all) = Table::of_all(&module) else { return };
    let starts = all.iter().map(|(start, _)| start.0).take(64).collect::<Vec<_>>();
    for at in starts.iter().flat_map(|&start| [start.wrapping_sub(1), start]).chain([asked, asked + CODE]) {
        check(&module, &all, at);
    }
    let mut text = [(Svma(CODE), rest), (Svma(starts.first().map_or(0, |&start| start)), body)];
    for table in [Table::by_length(&module), Table::of_calls(&module, &mut text[..])] {
        let table = table.expect("another table of the module was made");
        assert!(table.rows() <= all.rows() && table.content() != Content::All);
        load(&table.to_bytes(), asked);
    }
}

/// What `run` takes for a file's `.eh_frame` without a header.
pub fn seeded(eh_frame: &[u8]) -> Vec<u8> {
    [&[1, 0, 0, 0], eh_frame].concat()
}

/// What the table says has to be what the row says; that nothing is known it may always say.
fn check(module: &Module<&[u8]>, table: &Table, at: u64) {
    let Lookup::Rule(rule) = table.lookup(Svma(at)) else { return };
    match module.row(Svma(at)) {
        Ok(Some(row)) => assert_eq!(Some(rule), Rule::compact(&row), "{at:#x}: {row:?}"),
        Ok(None) => assert_eq!(rule, Rule::only(Kind::MissingHere), "{at:#x}"),
        // A lookup looks for more functions around here, and finds that one is damaged.
        Err(error) => assert_eq!(rule, Rule::only(Kind::MissingHere), "{at:#x}: {error}"),
    }
}

fn load(bytes: &[u8], asked: u64) {
    let Ok(table) = Table::from_bytes(bytes) else { return };
    assert_eq!(table.to_bytes(), bytes);
    for step in 0..64 {
        std::hint::black_box(table.lookup(Svma(asked.wrapping_mul(step))));
    }
    assert_eq!(table.iter().count(), table.rows());
}
