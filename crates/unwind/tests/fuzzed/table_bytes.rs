//! Tables of sections with random bytes equal single rows or are refused; random bytes as a table are refused or give
//! answers.

use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::{Content, Lookup, Table};
use plumb_unwind::{Isa, Module, Section, Sections, Svma};

const CODE: u64 = 0x1000;
/// Address of the frames if there is a long header, well behind the functions.
const FRAMES: u64 = 0x80_0000;
/// Address of `.eh_frame_hdr`.
const HEADER: u64 = 0x800;
/// Unit of the length of a long `.eh_frame_hdr`.
const UNIT: usize = 64;

/// Runs one input. The first four bytes select the sections that the rest consists of, and the address to look up;
/// see `seeded`.
pub fn run(data: &[u8]) {
    let Some((&[shape, split, pc_low, pc_high], rest)) = data.split_first_chunk() else { return };
    let asked = u64::from(pc_low) | u64::from(pc_high) << 8;
    if shape & 0x80 != 0 {
        return load(rest, asked);
    }
    let (frames, unit) = if shape & 8 != 0 { (FRAMES, UNIT) } else { (CODE, 1) };
    let (header, body) =
        rest.split_at(if shape & 4 != 0 { rest.len().min(usize::from(split) * unit) } else { 0 });
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let isa = if shape & 0x10 != 0 { Isa::Aarch64 } else { Isa::X86_64 };
    let mut sections =
        Sections { isa, text: Some(Svma(CODE)), got: Some(Svma(0x2000)), ..Sections::default() };
    if shape & 1 != 0 {
        sections.eh_frame = section(frames, body);
    }
    if shape & 2 != 0 {
        sections.debug_frame = section(0, body);
    }
    if shape & 4 != 0 {
        sections.eh_frame_hdr = section(HEADER, header);
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
        for (start, _) in table.iter() {
            assert_eq!(table.lookup(start), all.lookup(start), "{start:?}: {:?}", table.content());
        }
        assert!(table.rows() <= all.rows() && table.content() != Content::All);
        load(&table.to_bytes(), asked);
    }
}

/// Converts a file's `.eh_frame` without a header to an input of `run`.
pub fn seeded(eh_frame: &[u8]) -> Vec<u8> {
    [&[1, 0, 0, 0], eh_frame].concat()
}

/// Converts a file's `.eh_frame`, as much of it as fits, with a header in the linkers' format, to an input of `run`.
pub fn seeded_with_header(eh_frame: &[u8]) -> Vec<u8> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(*eh_frame.get(at..)?.first_chunk()?));
    let (mut functions, mut at) = (Vec::new(), 0);
    while let (Some(length), Some(id)) = (u32_at(at), u32_at(at + 4))
        && (length as usize) < eh_frame.len()
        && length != 0
    {
        // Compilers write addresses relative to their own location.
        let begin =
            u32_at(at + 8).map(|from| FRAMES.wrapping_add_signed(i64::from(from as i32)) + at as u64 + 8);
        functions.extend(begin.filter(|_| id != 0).map(|begin| (begin, FRAMES + at as u64)));
        at += 4 + length as usize;
    }
    functions.sort();
    functions.truncate(255 * UNIT / 8 - 2);
    let mut header = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
    header.extend((functions.len() as u32).to_le_bytes());
    for (begin, entry) in functions {
        header.extend((begin.wrapping_sub(HEADER) as u32).to_le_bytes());
        header.extend((entry.wrapping_sub(HEADER) as u32).to_le_bytes());
    }
    header.resize(header.len().next_multiple_of(UNIT), 0);
    [&[1 | 4 | 8, (header.len() / UNIT) as u8, 0, 0], &header[..], eh_frame].concat()
}

/// Checks that a table's rule equals that of the row. A table may lack a rule.
fn check(module: &Module<&[u8]>, table: &Table, at: u64) {
    let Lookup::Rule(rule) = table.lookup(Svma(at)) else { return };
    match module.row(Svma(at)) {
        Ok(Some(row)) => {
            let expected = match table.isa() {
                Isa::Aarch64 => Rule::compact_for::<Aarch64>(&row),
                _ => Rule::compact(&row),
            };
            assert_eq!(Some(rule), expected, "{at:#x}: {row:?}");
        }
        Ok(None) => assert_eq!(rule, Rule::only(Kind::MissingHere), "{at:#x}"),
        // A lookup tries several functions around the address, and one of them is damaged.
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
