//! Test helper that extracts the unwind sections of ELF files.

#![allow(dead_code, reason = "each test binary uses what it needs")]

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use plumb_unwind::{Isa, Section, Sections, Svma};

/// Returns the sections of the ELF image `data` that matter for unwinding.
pub fn sections(data: &[u8]) -> Option<Sections<Vec<u8>>> {
    let file = object::File::parse(data).ok()?;
    let take = |name: &str| {
        let section = file.section_by_name(name)?;
        let bytes = section.data().ok()?.to_vec();
        (!bytes.is_empty()).then(|| Section { address: Svma(section.address()), bytes })
    };
    let isa = match file.architecture() {
        object::Architecture::X86_64 => Isa::X86_64,
        object::Architecture::Aarch64 => Isa::Aarch64,
        object::Architecture::Arm => Isa::Arm,
        _ => return None,
    };
    Some(Sections {
        isa,
        eh_frame: take(".eh_frame"),
        eh_frame_hdr: take(".eh_frame_hdr"),
        debug_frame: take(".debug_frame"),
        exidx: take(".ARM.exidx"),
        extab: take(".ARM.extab"),
        text: file.section_by_name(".text").map(|section| Svma(section.address())),
        got: file.section_by_name(".got").map(|section| Svma(section.address())),
        entry: None,
    })
}

/// Returns the address range of the code.
pub fn code(data: &[u8]) -> Option<std::ops::Range<u64>> {
    let file = object::File::parse(data).ok()?;
    let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
    let ranges: Vec<_> = code.map(|section| section.address()..section.address() + section.size()).collect();
    Some(ranges.iter().map(|range| range.start).min()?..ranges.iter().map(|range| range.end).max()?)
}

/// Returns the stated address minus the file offset of the segment that holds `offset`. An executable mapping's start
/// minus its file offset, minus this value, is the bias. Segments may share a page, so only those with code count.
pub fn stated_minus_offset(data: &[u8], offset: u64) -> Option<u64> {
    let file = object::File::parse(data).ok()?;
    let held = |at: u64, size: u64| offset & !0xfff >= at & !0xfff && offset < at.saturating_add(size.max(1));
    let segment = file.segments().find(|segment| {
        let (at, size) = segment.file_range();
        let has_code = matches!(segment.flags(), object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        has_code && held(at, size)
    })?;
    Some(segment.address().wrapping_sub(segment.file_range().0))
}

/// Names the nearest symbol at or before `address`.
pub fn symbol(data: &[u8], address: u64) -> String {
    let Ok(file) = object::File::parse(data) else { return "no symbols".to_owned() };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let nearest = symbols
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.address() <= address)
        .max_by_key(|symbol| symbol.address());
    let section = file.sections().find(|section| {
        address
            .checked_sub(section.address())
            .is_some_and(|offset| offset < section.size() && section.address() != 0)
    });
    let section = section.and_then(|section| section.name().ok().map(str::to_owned)).unwrap_or_default();
    match nearest {
        Some(symbol) => {
            let name = symbol.name().unwrap_or_default();
            let beyond = if address - symbol.address() >= symbol.size().max(1) { "after " } else { "" };
            format!("{section}, {beyond}{name}+{:#x}", address - symbol.address())
        }
        None => section,
    }
}

/// Returns the address of the symbol called `name`.
pub fn address_of(data: &[u8], name: &str) -> Option<u64> {
    let file = object::File::parse(data).ok()?;
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    symbols.find(|symbol| symbol.is_definition() && symbol.name() == Ok(name)).map(|symbol| symbol.address())
}

/// Returns the address range of the function called `name`.
pub fn range_of(data: &[u8], name: &str) -> Option<std::ops::Range<u64>> {
    let file = object::File::parse(data).ok()?;
    let symbol = file.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))?;
    let begin = symbol.address() & !1;
    Some(begin..begin + symbol.size())
}
