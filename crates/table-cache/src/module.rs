//! Creates a file's module from the unwind sections that its headers list.

use plumb_process::{SectionReader, UnwindSections};
use plumb_unwind::{Isa, Module, Section, Sections, Svma, go, sframe};

use crate::{TableLoader, code};

/// Creates the module of a file with these sections, including rules from Go's own table and rules derived from code.
/// `kept`: the cache for rules derived from code, and the file's build id.
pub fn module_of(
    mut sections: UnwindSections,
    isa: Isa,
    kept: Option<(&mut TableLoader, &[u8])>,
) -> Module<Vec<u8>> {
    let section =
        |section: plumb_process::Section| Section { address: Svma(section.address), bytes: section.bytes };
    let of_go = sections.go.take().and_then(|of_go| add_go(&of_go, &mut sections));
    let (code, symbols) = (sections.code.take(), sections.symbols.take());
    let sframe = sections.sframe.take().filter(|_| isa == Isa::X86_64);
    let module = Module::new(Sections {
        eh_frame: sections.eh_frame.map(section),
        eh_frame_hdr: sections.eh_frame_hdr.map(section),
        debug_frame: of_go.or_else(|| sections.debug_frame.map(section)),
        exidx: sections.exidx.map(section),
        extab: sections.extab.map(section),
        isa,
        text: sections.text.map(Svma),
        got: sections.got.map(Svma),
        entry: sections.entry.map(Svma),
    });
    let entries = sframe.and_then(|section| {
        let gaps = module.gaps(Svma(0)..Svma(u64::MAX));
        let is_missing = |at| {
            let after = gaps.partition_point(|gap| gap.start <= at);
            gaps.get(..after).and_then(<[_]>::last).is_some_and(|gap| at < gap.end)
        };
        sframe::eh_frame(&section.bytes, Svma(section.address), is_missing)
    });
    let module = match entries {
        Some(entries) => code::with_entries(module, &entries),
        None => module,
    };
    let Some(code) = code.filter(|_| code::are_wanted(&module)) else { return module };
    let make = || code::entries(&module, &code, symbols.as_ref());
    let entries = kept.map_or_else(make, |(loader, build_id)| loader.entries(build_id, make));
    code::with_entries(module, &entries)
}

/// Rules from Go's own table, generated per function on demand: generating all rules of a large program takes a
/// second and tens of megabytes.
#[derive(Debug)]
pub struct GoFunctions {
    table: SectionReader,
    code: SectionReader,
    layout: go::Layout,
}

impl GoFunctions {
    /// Takes the sections that belong to Go's table. Returns `None`, and leaves the sections, if the file is not a Go
    /// program or has an unknown version.
    pub fn take(sections: &mut UnwindSections) -> Option<Self> {
        let [table, code] = *sections.go.take()?;
        match go::layout(&Bytes(&table), Svma(code.address), &Bytes(&code)) {
            Some(layout) => Some(Self { table, code, layout }),
            None => {
                sections.go = Some(Box::new([table, code]));
                None
            }
        }
    }

    /// Returns the start of the function that holds an address.
    pub fn start(&self, pc: Svma) -> Option<Svma> {
        go::function_start(
            self.layout,
            (&Bytes(&self.table), Svma(self.code.address), &Bytes(&self.code)),
            pc,
        )
    }

    /// Returns a module with the rules of the function that holds an address.
    pub fn at(&self, pc: Svma) -> Option<Module<Vec<u8>>> {
        let sections = (&Bytes(&self.table), Svma(self.code.address), &Bytes(&self.code));
        let bytes = go::function_frame(self.layout, sections, pc)?;
        let debug_frame = Some(Section { address: Svma(0), bytes });
        Some(Module::new(Sections { debug_frame, isa: self.layout.isa, ..Sections::default() }))
    }
}

/// Adapter from a section to the input of Go's rule generator.
struct Bytes<'a>(&'a SectionReader);

impl go::Bytes for Bytes<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        self.0.read_at(offset, into)
    }

    fn len(&self) -> u64 {
        self.0.size()
    }
}

/// Adds the rules of Go's own table: to `.eh_frame` if it exists, which has code of other languages, and otherwise as
/// the section that is returned.
fn add_go([table, code]: &[SectionReader; 2], sections: &mut UnwindSections) -> Option<Section<Vec<u8>>> {
    let text = Svma(code.address);
    let (table, code) = (Bytes(table), Bytes(code));
    let Some(eh_frame) = sections.eh_frame.as_mut().filter(|section| !section.bytes.is_empty()) else {
        return Some(Section { address: Svma(0), bytes: go::debug_frame(&table, text, &code)? });
    };
    match go::eh_frame(&table, text, &code, std::mem::take(&mut eh_frame.bytes)) {
        Ok(both) => {
            eh_frame.bytes = both;
            // The existing index does not cover the new entries.
            sections.eh_frame_hdr = None;
        }
        Err(as_before) => eh_frame.bytes = as_before,
    }
    None
}
