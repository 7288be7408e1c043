//! Reads only the part of a file's DWARF that the units of a few addresses need: each function is in one unit of thousands.
//!
//! Invariant: a partly read section has zeros before the part, so that offsets stay valid, and nothing after it, so that
//! reading on is an error. If another unit is needed ([`Side::is_lacking`]), everything must be read.
//!
//! [`Side::is_lacking`]: crate::dwarf::side::Side::is_lacking

use std::ops::Range;

use gimli::{
    AttributeValue, DebugAbbrev, DebugAranges, DebugInfo, DebugInfoOffset, EndianSlice, Format, LittleEndian,
    SectionId, UnitHeader,
};

use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Bytes;
use crate::dwarf::ranges::within;
use crate::inflated::Contents;
use crate::summary::Missing;

/// Bytes read for the abbreviations of a unit, which have no length field. A unit of LLVM's has some 5,000.
const ABBREVIATIONS: u64 = 64 << 10;
/// Size of the longest length field of a unit or a line program.
const LENGTH: u64 = 12;

/// Parts of the sections that hold data of each unit.
pub(crate) struct Part {
    /// `.debug_aranges`: the index of the units.
    pub aranges: Vec<u8>,
    /// `.debug_info`.
    pub info: Vec<u8>,
    /// `.debug_abbrev`.
    pub abbrev: Vec<u8>,
    /// `.debug_line`.
    pub line: Vec<u8>,
}

impl Part {
    /// Reads what the units of the `wanted` addresses (sorted) need of the sections that `open` opens. `None` if `.debug_aranges`
    /// does not list them all, so that only the whole sections show which units these are.
    pub fn find<'s>(
        open: impl Fn(SectionId) -> Result<Option<Contents<'s>>, Missing>,
        wanted: &[u64],
    ) -> Result<Option<Self>, Missing> {
        let Some(aranges) = open(SectionId::DebugAranges)? else { return Ok(None) };
        let Some((units, aranges)) = listed(&aranges.all()?, wanted) else { return Ok(None) };
        let (Some(info), Some(abbrev)) = (open(SectionId::DebugInfo)?, open(SectionId::DebugAbbrev)?) else {
            return Ok(None);
        };
        let info = measured(info, &units)?;
        let of_info = DebugInfo::new(&info, LittleEndian);
        let header = |&unit| of_info.header_from_offset(DebugInfoOffset(usize::try_from(unit).ok()?)).ok();
        let headers: Vec<UnitHeader<Bytes<'_>>> = units.iter().filter_map(header).collect();
        let starts = headers.iter().map(|header| header.debug_abbrev_offset().0 as u64);
        let abbrev = part(abbrev, starts.map(|start| start..start.saturating_add(ABBREVIATIONS)))?;
        let of_abbrev = DebugAbbrev::new(&abbrev, LittleEndian);
        let programs: Vec<u64> =
            headers.iter().filter_map(|header| line_program(header, &of_abbrev)).collect();
        let line = open(SectionId::DebugLine)?.map_or(Ok(Vec::new()), |line| measured(line, &programs))?;
        Ok(Some(Self { aranges, info, abbrev, line }))
    }
}

/// Returns the offsets of the units that list `wanted` addresses, and their sets of ranges. `None` unless all are listed.
fn listed(section: &[u8], wanted: &[u64]) -> Option<(Vec<u64>, Vec<u8>)> {
    let (mut units, mut sets) = (Vec::new(), Vec::new());
    let mut is_listed = vec![false; wanted.len()];
    let budget = Budget::default();
    let mut headers = DebugAranges::new(section, LittleEndian).headers();
    while let Ok(Some(header)) = headers.next() {
        let mut is_wanted = false;
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            let Ok(range) = entry.map(|entry| entry.range()) else { continue };
            let here = within(wanted, &(range.begin..range.end));
            if !budget.pay(1 + here.len() as u64) {
                return None;
            }
            is_wanted |= !here.is_empty();
            is_listed[here].fill(true);
        }
        if is_wanted {
            units.push(header.debug_info_offset().0 as u64);
            let start = header.offset().0;
            let length = if header.encoding().format == Format::Dwarf64 { 12 } else { 4 } + header.length();
            sets.extend_from_slice(section.get(start..start.checked_add(length)?)?);
        }
    }
    is_listed.iter().all(|&is_listed| is_listed).then_some((units, sets))
}

/// Returns the offset of a unit's line program.
fn line_program(unit: &UnitHeader<Bytes<'_>>, section: &DebugAbbrev<Bytes<'_>>) -> Option<u64> {
    let abbreviations = unit.abbreviations(section).ok()?;
    let mut entries = unit.entries(&abbreviations);
    entries.next_dfs().ok()?;
    match entries.current()?.attr_value(gimli::DW_AT_stmt_list)? {
        AttributeValue::DebugLineRef(offset) => Some(offset.0 as u64),
        _ => None,
    }
}

/// Reads the part of a section with the items at `starts`. Each item begins with its length.
fn measured(mut section: Contents<'_>, starts: &[u64]) -> Result<Vec<u8>, Missing> {
    let mut ranges = Vec::with_capacity(starts.len());
    for &start in starts {
        let bytes = section.read(start..start.saturating_add(LENGTH))?;
        let mut reader = EndianSlice::new(&bytes, LittleEndian);
        let length = gimli::Reader::read_initial_length(&mut reader).map_or(0, |(length, _)| length as u64);
        ranges.push(start..start.saturating_add(LENGTH).saturating_add(length));
    }
    part(section, ranges.into_iter())
}

/// Reads a section from the first of the ranges to the last.
fn part(mut section: Contents<'_>, ranges: impl Iterator<Item = Range<u64>>) -> Result<Vec<u8>, Missing> {
    let all = ranges.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
    let Some(all) = all else { return Ok(Vec::new()) };
    let read = section.read(all.clone())?;
    let start = usize::try_from(all.start.min(section.size())).unwrap_or(0);
    // The system provides zeroed memory without writing it.
    let mut bytes = vec![0; start + read.len()];
    bytes[start..].copy_from_slice(&read);
    Ok(bytes)
}
