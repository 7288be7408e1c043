//! A file's unwind information, of the sections that its headers show.

use plumb_process::{SectionReader, UnwindSections};
use plumb_unwind::{Isa, Module, Section, Sections, Svma, go};

/// The unwind information of a file with these sections, Go's own table included.
pub fn module_of(mut sections: UnwindSections, isa: Isa) -> Module<Vec<u8>> {
    let section =
        |section: plumb_process::Section| Section { address: Svma(section.address), bytes: section.bytes };
    let of_go =
        sections.go.take().filter(|_| isa == Isa::X86_64).and_then(|of_go| add_go(&of_go, &mut sections));
    Module::new(Sections {
        eh_frame: sections.eh_frame.map(section),
        eh_frame_hdr: sections.eh_frame_hdr.map(section),
        debug_frame: of_go.or_else(|| sections.debug_frame.map(section)),
        exidx: sections.exidx.map(section),
        extab: sections.extab.map(section),
        isa,
        text: sections.text.map(Svma),
        got: sections.got.map(Svma),
        entry: sections.entry.map(Svma),
    })
}

/// A section for the part that makes rules of Go's table.
struct Bytes<'a>(&'a SectionReader);

impl go::Bytes for Bytes<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        self.0.read_at(offset, into)
    }

    fn len(&self) -> u64 {
        self.0.size()
    }
}

/// Adds the rules of Go's own table: to `.eh_frame` where there is one, for code of other languages, else as the section that is returned.
fn add_go([table, code]: &[SectionReader; 2], sections: &mut UnwindSections) -> Option<Section<Vec<u8>>> {
    let text = Svma(code.address);
    let (table, code) = (Bytes(table), Bytes(code));
    let Some(eh_frame) = sections.eh_frame.as_mut().filter(|section| !section.bytes.is_empty()) else {
        return Some(Section { address: Svma(0), bytes: go::debug_frame(&table, text, &code)? });
    };
    match go::eh_frame(&table, text, &code, std::mem::take(&mut eh_frame.bytes)) {
        Ok(both) => {
            eh_frame.bytes = both;
            // It is not in the order of all functions any more.
            sections.eh_frame_hdr = None;
        }
        Err(as_before) => eh_frame.bytes = as_before,
    }
    None
}
