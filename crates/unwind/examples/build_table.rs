//! Builds the unwind table of a file several times, to measure the cost of a build:
//! `build_table FILE TIMES [length|calls|all]`. For the instructions of one build, subtract two runs with different
//! TIMES.

#[path = "../tests/elf/mod.rs"]
mod elf;

use std::hint::black_box;
use std::time::{Duration, Instant};

use object::{Object, ObjectSection, SectionKind};
use plumb_unwind::table::{Table, TableError};
use plumb_unwind::{Module, Svma};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, times, rest @ ..] = &arguments[..] else {
        return Err("build_table FILE TIMES [CONTENT]".into());
    };
    let data = std::fs::read(path)?;
    let sections = elf::sections(&data).ok_or("no ELF file of a known architecture")?;
    let frames = sections.eh_frame.as_ref().map_or(0, |section| section.bytes.len());
    let file = object::File::parse(&data[..])?;
    let text =
        file.sections().filter(|section| section.kind() == SectionKind::Text && section.address() != 0);
    let mut text: Vec<(Svma, &[u8])> =
        text.filter_map(|section| Some((Svma(section.address()), section.data().ok()?))).collect();
    let module = Module::new(sections);
    let mut build = || -> Result<Table, TableError> {
        match rest.first().map(String::as_str) {
            Some("calls") => Table::of_calls(&module, &mut text[..]),
            Some("all") => Table::of_all(&module),
            _ => Table::by_length(&module),
        }
    };
    let mut taken = Vec::new();
    for _ in 0..times.parse::<u32>()? {
        let start = Instant::now();
        let table = black_box(build()?);
        taken.push(start.elapsed());
        drop(table);
    }
    let table = build()?;
    println!("eh_frame {frames} rows {} rules {} bytes {}", table.rows(), table.rules().len(), table.size());
    taken.sort();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    eprintln!("best {:.2} ms median {:.2} ms", ms(taken.first()), ms(taken.get(taken.len() / 2)));
    Ok(())
}
