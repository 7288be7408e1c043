//! Rules as call-frame information: behind the `.eh_frame` that a file has, and in its index.
//!
//! Entries are written by gimli.

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec, FrameDescriptionEntry,
    FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, X86_64};
use plumb_unwind::{Section, Sections, Svma};

use super::effect::{FramePointer, Saved, State};
use super::flow::Function;

/// Bytes of a word, by which entries count.
const WORD: i32 = 8;

/// The sections with rules for these functions, which are in order.
pub(super) fn added(mut sections: Sections<Vec<u8>>, functions: &[Function]) -> Sections<Vec<u8>> {
    let Some(entries) = entries(functions) else { return sections };
    let section = sections.eh_frame.get_or_insert_with(|| Section { address: Svma(0), bytes: Vec::new() });
    section.bytes.resize(section.bytes.len().next_multiple_of(4), 0);
    let address = section.address.0.wrapping_add(section.bytes.len() as u64);
    section.bytes.extend_from_slice(&entries);
    sections.eh_frame_hdr = sections.eh_frame_hdr.and_then(|index| indexed(index, address, &entries));
    sections
}

fn entries(functions: &[Function]) -> Option<Vec<u8>> {
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
    let mut common = CommonInformationEntry::new(encoding, 1, -(WORD as i8), X86_64::RA);
    common.add_instruction(CallFrameInstruction::Cfa(X86_64::RSP, 8));
    common.add_instruction(CallFrameInstruction::Offset(X86_64::RA, -8));
    let mut table = FrameTable::default();
    let common = table.add_cie(common);
    for function in functions {
        let length = u32::try_from(function.range.end - function.range.start).ok()?;
        let mut entry = FrameDescriptionEntry::new(Address::Constant(function.range.start), length);
        let mut before = State::BEGIN;
        for &(at, state) in &function.rows {
            let at = (at - function.range.start) as u32;
            say(state, before, |instruction| entry.add_instruction(at, instruction));
            before = state;
        }
        table.add_fde(common, entry);
    }
    let mut out = EhFrame(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut out).ok()?;
    Some(out.0.into_vec())
}

/// What a row says otherwise than the one before.
fn say(state: State, before: State, mut add: impl FnMut(CallFrameInstruction)) {
    let cfa = |state: State| match (state.sp, state.fp) {
        (Some(below), _) => Some((X86_64::RSP, below)),
        (None, FramePointer::Below(below)) => Some((X86_64::RBP, below)),
        (None, FramePointer::Other) => None,
    };
    if let Some((register, below)) = cfa(state).filter(|&now| cfa(before) != Some(now)) {
        add(CallFrameInstruction::Cfa(register, below));
    }
    if state.saved != before.saved {
        add(match state.saved {
            Saved::Not => CallFrameInstruction::SameValue(X86_64::RBP),
            // Others can't be said in words.
            Saved::At(at) if at % WORD == 0 => CallFrameInstruction::Offset(X86_64::RBP, at),
            Saved::At(_) | Saved::Lost => CallFrameInstruction::Undefined(X86_64::RBP),
        });
    }
}

/// What `.eh_frame_hdr` begins with as all linkers write it: version 1; a pointer relative to itself, a number, pairs relative to the section.
const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Bytes before the pairs.
const HEAD: usize = 12;

/// The index with these entries, which are at an address. `None` where it is not as usual, or they are too far from it.
fn indexed(index: Section<Vec<u8>>, address: u64, entries: &[u8]) -> Option<Section<Vec<u8>>> {
    let head = index.bytes.get(..HEAD).filter(|head| head.starts_with(&USUAL))?;
    let count = u32::from_le_bytes(*head.last_chunk()?);
    let pairs = index.bytes.get(HEAD..)?.as_chunks::<8>().0.get(..count as usize)?;
    let relative = |address: u64| i32::try_from(address.wrapping_sub(index.address.0) as i64).ok();
    let mut pairs: Vec<[u8; 8]> = pairs.to_vec();
    let mut at = 0;
    while let Some(length) =
        entries.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map(|&bytes| u32::from_le_bytes(bytes))
    {
        let id = entries.get(at + 4..)?.first_chunk::<4>()?;
        if *id != [0; 4] {
            let start = u64::from_le_bytes(*entries.get(at + 8..)?.first_chunk()?);
            let [start, entry] =
                [relative(start)?, relative(address.wrapping_add(at as u64))?].map(i32::to_le_bytes);
            pairs.push([start, entry].concat().try_into().ok()?);
        }
        at += 4 + length as usize;
    }
    pairs.sort_by_key(|&[a, b, c, d, ..]| i32::from_le_bytes([a, b, c, d]));
    let mut bytes = head.get(..HEAD - 4)?.to_vec();
    bytes.extend(u32::try_from(pairs.len()).ok()?.to_le_bytes());
    bytes.extend(pairs.iter().flatten());
    Some(Section { address: index.address, bytes })
}
