//! Test helper that finds the calls in the code of ELF files with a disassembler.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Object, ObjectSection, SectionKind};
use plumb_unwind::Svma;

/// Returns the executable sections of a file: stated address and bytes.
pub fn code(data: &[u8]) -> Vec<(Svma, Vec<u8>)> {
    let Ok(file) = object::File::parse(data) else { return Vec::new() };
    let text =
        file.sections().filter(|section| section.kind() == SectionKind::Text && section.address() != 0);
    text.filter_map(|section| Some((Svma(section.address()), section.data().ok()?.to_vec()))).collect()
}

/// Returns the addresses after the calls in `range`, which must begin at an instruction.
pub fn returns(code: &[(Svma, Vec<u8>)], range: std::ops::Range<u64>) -> Vec<u64> {
    let holds = |(address, bytes): &&(Svma, Vec<u8>)| {
        address.0 <= range.start && range.end <= address.0 + bytes.len() as u64
    };
    let Some((address, bytes)) = code.iter().find(holds) else { return Vec::new() };
    let bytes = &bytes[(range.start - address.0) as usize..(range.end - address.0) as usize];
    let decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
    decoder.into_iter().filter(|code| code.mnemonic() == Mnemonic::Call).map(|call| call.next_ip()).collect()
}
