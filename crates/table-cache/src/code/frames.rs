//! Writes rules as call-frame information and appends it to a file's `.eh_frame`.
//!
//! The entries are encoded by gimli.

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec, FrameDescriptionEntry,
    FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, X86_64};
use plumb_unwind::{Module, Section, Svma, made};

use super::effect::{FramePointer, Saved, State};
use super::flow::Function;

/// Word size in bytes, by which offsets in entries are scaled.
const WORD: i32 = 8;

/// Adds these entries to a module.
pub(crate) fn with_entries(module: Module<Vec<u8>>, entries: &[u8]) -> Module<Vec<u8>> {
    if entries.is_empty() {
        return module;
    }
    let mut sections = module.into_sections();
    let section = sections.eh_frame.get_or_insert_with(|| Section { address: Svma(0), bytes: Vec::new() });
    section.bytes.resize(section.bytes.len().next_multiple_of(4), 0);
    section.bytes.extend_from_slice(entries);
    // The existing index does not cover the new entries.
    sections.eh_frame_hdr = None;
    Module::new(sections)
}

/// Creates entries with rules for these functions, and entries that mark these addresses as having no caller.
pub(super) fn entries(functions: &[Function], roots: &[u64]) -> Vec<u8> {
    if functions.is_empty() && roots.is_empty() {
        return Vec::new();
    }
    written(functions, roots).unwrap_or_default()
}

fn written(functions: &[Function], roots: &[u64]) -> Option<Vec<u8>> {
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
    let mut table = FrameTable::default();
    let mut common = |alignment: i64| {
        let mut common = CommonInformationEntry::new(encoding, 1, alignment as i8, X86_64::RA);
        common.add_instruction(CallFrameInstruction::Cfa(X86_64::RSP, WORD));
        common.add_instruction(CallFrameInstruction::Offset(X86_64::RA, -WORD));
        table.add_cie(common)
    };
    let [first, part, root] = [made::FIRST, made::PART, -i64::from(WORD)].map(&mut common);
    for function in functions {
        let length = u32::try_from(function.range.end - function.range.start).ok()?;
        let mut entry = FrameDescriptionEntry::new(Address::Constant(function.range.start), length);
        let mut before = State::BEGIN;
        for &(at, state) in &function.rows {
            let at = (at - function.range.start) as u32;
            say(state, before, |instruction| entry.add_instruction(at, instruction));
            before = state;
        }
        table.add_fde(if function.is_first { first } else { part }, entry);
    }
    for at in roots {
        // Cover the byte before, which is looked up for a return address.
        let mut entry = FrameDescriptionEntry::new(Address::Constant(at - 1), 1);
        entry.add_instruction(0, CallFrameInstruction::Undefined(X86_64::RA));
        table.add_fde(root, entry);
    }
    let mut out = EhFrame(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut out).ok()?;
    Some(out.0.into_vec())
}

/// Adds the instructions that lead from one row to the next.
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
            // Other offsets cannot be expressed in words.
            Saved::At(at) if at % WORD == 0 => CallFrameInstruction::Offset(X86_64::RBP, at),
            Saved::At(_) | Saved::Lost => CallFrameInstruction::Undefined(X86_64::RBP),
        });
    }
}
