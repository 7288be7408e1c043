//! Test helper that converts gimli's rows to this crate's types.

#![allow(dead_code, reason = "each test binary uses what it needs")]

use gimli::{EndianSlice, LittleEndian, UnwindSection, UnwindTableRow};
use plumb_unwind::{CfaRule, Expression, RegisterRule};

/// gimli's reader.
pub type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Returns the base addresses of a module's sections.
pub fn bases<B>(sections: &plumb_unwind::Sections<B>) -> gimli::BaseAddresses {
    let mut bases = gimli::BaseAddresses::default();
    if let Some(section) = &sections.eh_frame {
        bases = bases.set_eh_frame(section.address.0);
    }
    if let Some(section) = &sections.eh_frame_hdr {
        bases = bases.set_eh_frame_hdr(section.address.0);
    }
    if let Some(text) = sections.text {
        bases = bases.set_text(text.0);
    }
    if let Some(got) = sections.got {
        bases = bases.set_got(got.0);
    }
    bases
}

/// Reads `.eh_frame` with the call-frame instructions of this machine.
pub fn eh_frame(bytes: &[u8]) -> gimli::EhFrame<Slice<'_>> {
    let mut frames = gimli::EhFrame::new(bytes, LittleEndian);
    if cfg!(target_arch = "aarch64") {
        frames.set_vendor(gimli::Vendor::AArch64);
    }
    frames
}

/// Reads `.debug_frame` likewise.
pub fn debug_frame(bytes: &[u8]) -> gimli::DebugFrame<Slice<'_>> {
    let mut frames = gimli::DebugFrame::new(bytes, LittleEndian);
    if cfg!(target_arch = "aarch64") {
        frames.set_vendor(gimli::Vendor::AArch64);
    }
    frames
}

fn expression(expression: gimli::UnwindExpression<usize>) -> Expression {
    Expression { offset: expression.offset, length: expression.length }
}

/// Converts the rule of the CFA.
pub fn cfa(row: &UnwindTableRow<usize>) -> CfaRule {
    match *row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register: gimli::Register(0), offset: 0 } => CfaRule::Undefined,
        gimli::CfaRule::RegisterAndOffset { register, offset } => {
            CfaRule::Register { register: register.0, offset }
        }
        gimli::CfaRule::Expression(e) => CfaRule::Expression(expression(e)),
    }
}

/// Converts the rule of a register.
pub fn register(row: &UnwindTableRow<usize>, register: u16) -> RegisterRule {
    match row.register(gimli::Register(register)) {
        None => RegisterRule::Unspecified,
        Some(gimli::RegisterRule::Undefined) => RegisterRule::Undefined,
        Some(gimli::RegisterRule::SameValue) => RegisterRule::SameValue,
        Some(gimli::RegisterRule::Offset(offset)) => RegisterRule::Offset(offset),
        Some(gimli::RegisterRule::ValOffset(offset)) => RegisterRule::ValOffset(offset),
        Some(gimli::RegisterRule::Register(other)) => RegisterRule::Register(other.0),
        Some(gimli::RegisterRule::Expression(e)) => RegisterRule::Expression(expression(e)),
        Some(gimli::RegisterRule::ValExpression(e)) => RegisterRule::ValExpression(expression(e)),
        Some(other) => panic!("gimli knows a rule that x86_64 does not have: {other:?}"),
    }
}

/// Calls `visit` for each FDE of a section.
pub fn each_fde<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &gimli::BaseAddresses,
    mut visit: impl FnMut(&gimli::FrameDescriptionEntry<Slice<'a>>),
) where
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut entries = section.entries(bases);
    let mut cies = std::collections::HashMap::new();
    while let Some(entry) = entries.next().expect("gimli reads the section") {
        if let gimli::CieOrFde::Fde(partial) = entry {
            let fde = partial
                .parse(|section, bases, offset| {
                    let key = gimli::UnwindOffset::into(offset);
                    if let Some(cie) = cies.get(&key) {
                        return Ok(Clone::clone(cie));
                    }
                    let cie = section.cie_from_offset(bases, offset)?;
                    cies.insert(key, cie.clone());
                    Ok(cie)
                })
                .expect("gimli reads the FDE");
            visit(&fde);
        }
    }
}
