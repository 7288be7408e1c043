//! Writes rules as call-frame information and appends it to a file's `.eh_frame`.
//!
//! The entries are encoded by gimli.

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec, FrameDescriptionEntry,
    FrameTable,
};
use gimli::{AArch64, Encoding, Format, LittleEndian, Register, X86_64};
use plumb_unwind::{Isa, Module, Section, Svma, made};

use super::effect::{FramePointer, ReturnAddress, Saved, State};
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
pub(super) fn entries(isa: Isa, functions: &[Function], roots: &[u64]) -> Vec<u8> {
    if functions.is_empty() && roots.is_empty() {
        return Vec::new();
    }
    let names = Names::of(isa);
    written(&names, functions, roots).unwrap_or_default()
}

/// Numbers of the registers that entries name, and the state that they begin with.
struct Names {
    sp: Register,
    fp: Register,
    ra: Register,
    begin: State,
}

impl Names {
    fn of(isa: Isa) -> Names {
        let (sp, fp, ra) = match isa {
            Isa::X86_64 => (X86_64::RSP, X86_64::RBP, X86_64::RA),
            Isa::Aarch64 | Isa::Arm => (AArch64::SP, AArch64::X29, AArch64::X30),
        };
        Names { sp, fp, ra, begin: State::begin(isa) }
    }
}

fn written(names: &Names, functions: &[Function], roots: &[u64]) -> Option<Vec<u8>> {
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
    let mut table = FrameTable::default();
    let mut common = |alignment: i64| {
        let mut common = CommonInformationEntry::new(encoding, 1, alignment as i8, names.ra);
        common.add_instruction(CallFrameInstruction::Cfa(names.sp, names.begin.sp.unwrap_or(0)));
        if names.begin.ra == ReturnAddress::Pushed {
            common.add_instruction(CallFrameInstruction::Offset(names.ra, -WORD));
        }
        table.add_cie(common)
    };
    let [first, part, root] = [made::FIRST, made::PART, -i64::from(WORD)].map(&mut common);
    for function in functions {
        let length = u32::try_from(function.range.end - function.range.start).ok()?;
        let mut entry = FrameDescriptionEntry::new(Address::Constant(function.range.start), length);
        let mut before = names.begin;
        for &(at, state) in &function.rows {
            let at = (at - function.range.start) as u32;
            say(names, state, before, |instruction| entry.add_instruction(at, instruction));
            before = state;
        }
        table.add_fde(if function.is_first { first } else { part }, entry);
    }
    for at in roots {
        // Cover the byte before, which is looked up for a return address.
        let mut entry = FrameDescriptionEntry::new(Address::Constant(at - 1), 1);
        entry.add_instruction(0, CallFrameInstruction::Undefined(names.ra));
        table.add_fde(root, entry);
    }
    let mut out = EhFrame(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut out).ok()?;
    Some(out.0.into_vec())
}

/// Adds the instructions that lead from one row to the next.
fn say(names: &Names, state: State, before: State, mut add: impl FnMut(CallFrameInstruction)) {
    let cfa = |state: State| match (state.sp, state.fp) {
        (Some(below), _) => Some((names.sp, below)),
        (None, FramePointer::Below(below)) => Some((names.fp, below)),
        (None, FramePointer::Other) => None,
    };
    if let Some((register, below)) = cfa(state).filter(|&now| cfa(before) != Some(now)) {
        add(CallFrameInstruction::Cfa(register, below));
    }
    if state.ra != before.ra {
        match state.ra {
            ReturnAddress::InLink => add(CallFrameInstruction::SameValue(names.ra)),
            ReturnAddress::At(at) => add(CallFrameInstruction::Offset(names.ra, at)),
            ReturnAddress::Pushed | ReturnAddress::Lost => {}
        }
    }
    if state.saved != before.saved {
        add(match state.saved {
            Saved::Not => CallFrameInstruction::SameValue(names.fp),
            // Other offsets cannot be expressed in words.
            Saved::At(at) if at % WORD == 0 => CallFrameInstruction::Offset(names.fp, at),
            Saved::At(_) | Saved::Lost => CallFrameInstruction::Undefined(names.fp),
        });
    }
}
