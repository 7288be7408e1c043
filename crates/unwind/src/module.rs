//! The unwind sections of one ELF file.
//!
//! A module is made without looking at its sections. Whatever is needed of them is decoded on the first question; an
//! index is only built for a section that comes without one.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use once_cell::race::OnceBox;

use crate::address::Svma;
use crate::arm::exidx::{self, Placed};
use crate::cfi::{self, Bases, CfiError, Fde, Frames, Header, Index, Scratch, SectionKind};
use crate::isa::Isa;
use crate::made;
use crate::row::{Expression, RegisterRule, Row};
use crate::rule::Rule;
use crate::table::{self, Functions, Heads, Lookup, Table};
use crate::x86_64;

/// How many functions before the nearest one are tried where that does not hold the address: linkers keep entries of
/// length 0.
const NEIGHBOURS: usize = 4;

/// The bytes of a section and where the file says that they are loaded.
#[derive(Clone, Debug)]
pub struct Section<B> {
    /// Stated address of the first byte.
    pub address: Svma,
    /// The content.
    pub bytes: B,
}

/// The sections of a file that matter for unwinding; all may be absent.
#[derive(Clone, Debug)]
pub struct Sections<B> {
    /// `.eh_frame`. Where only the program header `PT_GNU_EH_FRAME` is known it may run on beyond the section's end.
    pub eh_frame: Option<Section<B>>,
    /// `.eh_frame_hdr`, or what `PT_GNU_EH_FRAME` points at.
    pub eh_frame_hdr: Option<Section<B>>,
    /// `.debug_frame`, uncompressed.
    pub debug_frame: Option<Section<B>>,
    /// `.ARM.exidx`, or what `PT_ARM_EXIDX` points at: the table of functions of 32-bit ARM.
    pub exidx: Option<Section<B>>,
    /// `.ARM.extab`: unwind instructions that don't fit into that table. It is found by address, so where sections are
    /// not known the whole segment that holds it will do.
    pub extab: Option<Section<B>>,
    /// What the file is for.
    pub isa: Isa,
    /// Where `.text` begins, the base of text-relative pointers.
    pub text: Option<Svma>,
    /// Where `.got` begins, the base of data-relative pointers.
    pub got: Option<Svma>,
    /// Where a process begins (`e_entry`), if one does. Code there that has no rules has no caller.
    pub entry: Option<Svma>,
}

impl<B> Default for Sections<B> {
    fn default() -> Self {
        Sections {
            eh_frame: None,
            eh_frame_hdr: None,
            debug_frame: None,
            exidx: None,
            extab: None,
            isa: Isa::default(),
            text: None,
            got: None,
            entry: None,
        }
    }
}

/// Bytes of the code at which a process begins that are taken to be its own where no rules say so: it is 34 to 47 long in glibc,
/// 22 in musl, and what comes next is aligned to 16.
const ENTRY: u64 = 48;

/// What holds an address.
pub(crate) enum Extent {
    /// A function with rules.
    Function(Range<Svma>),
    /// Code without, from here on.
    Gap { start: Svma },
}

/// The unwind information of one ELF file; what is the same in all processes that map it.
#[derive(Debug)]
pub struct Module<B> {
    sections: Sections<B>,
    /// What tells it from the last 2^32 modules that were made.
    number: u32,
    /// The head of `.eh_frame_hdr`, if it has a table that can be searched.
    header: Option<Header>,
    /// The rules for callers, if they are known beforehand.
    table: Option<Table>,
    eh_index: OnceBox<Index>,
    debug_index: OnceBox<Index>,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// Takes the sections without looking further than at the head of `.eh_frame_hdr`, so this never fails.
    pub fn new(sections: Sections<B>) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (eh_index, debug_index) = (OnceBox::new(), OnceBox::new());
        let mut module = Module { sections, number, header: None, table: None, eh_index, debug_index };
        module.header = module.parse_header();
        module
    }

    /// With the table of this module's file: walks ask it first for the rules of callers. A table of another file gives
    /// wrong frames; [`Table::is_of`] tells them apart.
    pub fn with_table(self, table: Table) -> Self {
        Module { table: Some(table), ..self }
    }

    /// The sections that it was made of.
    pub fn into_sections(self) -> Sections<B> {
        self.sections
    }

    /// Its table, if it has one.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The rule for the call that ends with the byte at `call`, if there is a table that says it.
    #[inline]
    pub(crate) fn tabled(&self, call: Svma) -> Option<Rule> {
        match self.table.as_ref()?.lookup(call) {
            Lookup::Rule(rule) => Some(rule),
            Lookup::Odd | Lookup::Absent => None,
        }
    }

    fn parse_header(&self) -> Option<Header> {
        let section = self.sections.eh_frame_hdr.as_ref()?;
        let header = Header::parse(section.bytes.as_ref(), &self.header_bases(section)).ok()?;
        (header.len() > 0).then_some(header)
    }

    /// What pointers in `.eh_frame_hdr` are relative to.
    fn header_bases(&self, section: &Section<B>) -> Bases {
        Bases { data: Some(section.address.0), ..self.bases(section) }
    }

    /// Bytes of memory that its sections and its table take; what is built of a section that comes without an index is left out.
    pub fn bytes(&self) -> usize {
        let Sections { eh_frame, eh_frame_hdr, debug_frame, exidx, extab, .. } = &self.sections;
        let sections = [eh_frame, eh_frame_hdr, debug_frame, exidx, extab].into_iter().flatten();
        let bytes = sections.map(|section| section.bytes.as_ref().len()).fold(0, usize::saturating_add);
        bytes.saturating_add(self.table.as_ref().map_or(0, Table::bytes))
    }

    /// The sections that the module was made of.
    pub fn sections(&self) -> &Sections<B> {
        &self.sections
    }

    /// The full row of rules for the instruction at `pc`, `None` if the file has none for it. For a return address ask
    /// for the byte before: the call may be the last instruction of its function.
    pub fn row(&self, pc: Svma) -> Result<Option<Row>, CfiError> {
        self.row_with(pc, &mut Scratch::default())
    }

    /// The bytes of an expression of one of this module's rows.
    pub fn expression(&self, row: &Row, expression: Expression) -> &[u8] {
        expression.bytes(self.text(row.section))
    }

    /// What the file is for.
    pub(crate) fn isa(&self) -> Isa {
        self.sections.isa
    }

    /// Whether the file has unwind information for any code.
    pub(crate) fn has_info(&self) -> bool {
        let Sections { eh_frame, debug_frame, exidx, .. } = &self.sections;
        eh_frame.is_some() || debug_frame.is_some() || exidx.is_some()
    }

    /// The bytes that expressions of rows of that section are in.
    pub(crate) fn text(&self, kind: SectionKind) -> &[u8] {
        let section = match kind {
            SectionKind::EhFrame => &self.sections.eh_frame,
            SectionKind::EhFrameHdr => &self.sections.eh_frame_hdr,
            SectionKind::DebugFrame => &self.sections.debug_frame,
            SectionKind::Exidx => &self.sections.exidx,
            SectionKind::Extab => &self.sections.extab,
        };
        section.as_ref().map_or(&[], |section| section.bytes.as_ref())
    }

    /// The rule for the instruction at `pc`, if it is one that takes no full row and the module is as usual.
    pub(crate) fn quick_rule(&self, pc: Svma, heads: &mut Heads) -> Option<Rule> {
        let Sections { eh_frame: Some(frames), eh_frame_hdr: Some(index), isa: Isa::X86_64, .. } =
            &self.sections
        else {
            return None;
        };
        let header = self.header.as_ref()?;
        let (_, entry) = header.nearest_usual(index.bytes.as_ref(), index.address.0, pc.0)?;
        let offset = usize::try_from(entry.wrapping_sub(frames.address.0)).ok()?;
        table::rule_at(&self.frames(frames, SectionKind::EhFrame), heads, (self.number, offset), pc.0)
    }

    /// As [`Module::row`], with memory to work in.
    pub(crate) fn row_with(&self, pc: Svma, scratch: &mut Scratch) -> Result<Option<Row>, CfiError> {
        if let Some(section) = &self.sections.eh_frame {
            let frames = self.frames(section, SectionKind::EhFrame);
            if let Some(fde) = self.eh_fde(&frames, pc.0)? {
                return cfi::row_at(&frames, &fde, pc.0, scratch).map(Some);
            }
        }
        if let Some(section) = &self.sections.debug_frame {
            let frames = self.frames(section, SectionKind::DebugFrame);
            let index = self.debug_index.get_or_init(|| Box::new(Index::build(&frames)));
            if let Some(fde) = nearest(&frames, pc.0, index.search(pc.0), |i| Ok(index.fde(i)))? {
                return cfi::row_at(&frames, &fde, pc.0, scratch).map(Some);
            }
        }
        // Last, because it only holds at calls.
        if let Some(exidx) = &self.sections.exidx
            && self.sections.isa == Isa::Arm
        {
            return exidx::row_at(placed(exidx), self.sections.extab.as_ref().map(placed), pc);
        }
        Ok(self.entry().filter(|range| range.contains(&pc)).map(root))
    }

    /// The code at which a process begins, and which nobody calls.
    pub(crate) fn entry(&self) -> Option<Range<Svma>> {
        let start = self.sections.entry.filter(|_| self.sections.isa == Isa::X86_64)?;
        Some(start..Svma(start.0.saturating_add(ENTRY)))
    }

    /// `.ARM.exidx` and what it points at.
    pub(crate) fn exidx(&self) -> Option<(Placed<'_>, Option<Placed<'_>>)> {
        Some((placed(self.sections.exidx.as_ref()?), self.sections.extab.as_ref().map(placed)))
    }

    /// How many functions have rules, in the section that is asked first.
    pub fn function_count(&self) -> usize {
        self.functions().map_or(0, |functions| functions.len())
    }

    /// All functions that have rules in the section that is asked first, of those that have any.
    pub(crate) fn functions(&self) -> Option<Functions<'_>> {
        let Some(section) = &self.sections.eh_frame else { return self.in_debug_frame() };
        let frames = self.frames(section, SectionKind::EhFrame);
        if let Some((bytes, bases, header)) = self.header() {
            return Some(Functions::of_header(frames, bytes, header, bases));
        }
        let index = self.eh_index.get_or_init(|| Box::new(Index::build(&frames)));
        let functions = Functions::of_index(frames, index);
        if functions.len() == 0 { self.in_debug_frame().or(Some(functions)) } else { Some(functions) }
    }

    /// Those in `.debug_frame`.
    fn in_debug_frame(&self) -> Option<Functions<'_>> {
        let frames = self.frames(self.sections.debug_frame.as_ref()?, SectionKind::DebugFrame);
        let index = self.debug_index.get_or_init(|| Box::new(Index::build(&frames)));
        Some(Functions::of_index(frames, index))
    }

    /// The code of that range that no rules are about, in order; that at which a process begins is no part of it.
    pub fn gaps(&self, within: Range<Svma>) -> Vec<Range<Svma>> {
        let mut heads = Heads::default();
        let mut known: Vec<_> = self.entry().map(|entry| entry.start.0..entry.end.0).into_iter().collect();
        for functions in [self.functions(), self.in_debug_frame()].into_iter().flatten() {
            known.extend(functions.ranges(&mut heads));
        }
        known.sort_unstable_by_key(|range| range.start);
        let (mut gaps, mut end) = (Vec::new(), within.start.0);
        for range in known {
            let until = range.start.min(within.end.0);
            if end < until {
                gaps.push(Svma(end)..Svma(until));
            }
            end = end.max(range.end);
        }
        if end < within.end.0 {
            gaps.push(Svma(end)..within.end);
        }
        gaps
    }

    /// The function with rules that holds `pc`, or the code without rules around it.
    pub(crate) fn extent(&self, pc: Svma) -> Extent {
        let mut start = Svma(0);
        for (kind, section) in [
            (SectionKind::EhFrame, &self.sections.eh_frame),
            (SectionKind::DebugFrame, &self.sections.debug_frame),
        ] {
            let Some(section) = section else { continue };
            let frames = self.frames(section, kind);
            match self.before(&frames, pc.0) {
                Some(fde) if made::is(&fde) => {
                    let index = self.eh_index.get_or_init(|| Box::new(Index::build(&frames)));
                    return made::extent(&frames, index, pc.0, fde.range.contains(&pc.0));
                }
                Some(Fde { range, .. }) if range.contains(&pc.0) => {
                    return Extent::Function(Svma(range.start)..Svma(range.end));
                }
                Some(Fde { range, .. }) => start = start.max(Svma(range.end)),
                None => {}
            }
        }
        if let Some(range) = self.entry().filter(|range| range.contains(&pc)) {
            return Extent::Function(range);
        }
        Extent::Gap { start }
    }

    /// The last function of a section that begins at or before `pc`, or one near it that holds it.
    fn before(&self, frames: &Frames<'_>, pc: u64) -> Option<Fde> {
        let offset: &dyn Fn(usize) -> Option<usize>;
        let (count, by_header, by_index);
        match self.header().filter(|_| frames.kind == SectionKind::EhFrame) {
            Some((bytes, bases, header)) => {
                count = header.search(bytes, &bases, pc).ok()?;
                by_header = move |index| {
                    let address = header.fde(bytes, &bases, index).ok()?;
                    usize::try_from(address.wrapping_sub(frames.bases.section)).ok()
                };
                offset = &by_header;
            }
            None => {
                let cell =
                    if frames.kind == SectionKind::EhFrame { &self.eh_index } else { &self.debug_index };
                let index = cell.get_or_init(|| Box::new(Index::build(frames)));
                count = index.search(pc);
                by_index = move |at| index.fde(at);
                offset = &by_index;
            }
        }
        if let Ok(Some(fde)) = nearest(frames, pc, count, |index| Ok(offset(index))) {
            return Some(fde);
        }
        let last = (count.saturating_sub(NEIGHBOURS)..count).rev();
        last.filter_map(|index| frames.fde(offset(index)?).ok()?).max_by_key(|fde| fde.range.end)
    }

    /// Whether code without rules in that section has none in another.
    pub(crate) fn has_one_section(&self) -> bool {
        self.sections.eh_frame.is_none() || self.sections.debug_frame.is_none()
    }

    /// `.eh_frame_hdr`, if it can be searched.
    fn header(&self) -> Option<(&[u8], Bases, Header)> {
        let section = self.sections.eh_frame_hdr.as_ref()?;
        self.header.map(|header| (section.bytes.as_ref(), self.header_bases(section), header))
    }

    fn eh_fde(&self, frames: &Frames<'_>, pc: u64) -> Result<Option<Fde>, CfiError> {
        if let Some((bytes, bases, header)) = self.header() {
            let count = header.search(bytes, &bases, pc)?;
            return nearest(frames, pc, count, |index| {
                let address = header.fde(bytes, &bases, index)?;
                Ok(usize::try_from(address.wrapping_sub(frames.bases.section)).ok())
            });
        }
        let index = self.eh_index.get_or_init(|| Box::new(Index::build(frames)));
        nearest(frames, pc, index.search(pc), |i| Ok(index.fde(i)))
    }

    fn bases(&self, section: &Section<B>) -> Bases {
        Bases {
            section: section.address.0,
            text: self.sections.text.map(|address| address.0),
            data: self.sections.got.map(|address| address.0),
            function: None,
            word: self.sections.isa.word(),
        }
    }

    fn frames<'a>(&self, section: &'a Section<B>, kind: SectionKind) -> Frames<'a> {
        let bases = self.bases(section);
        Frames { isa: self.sections.isa, bytes: section.bytes.as_ref(), kind, bases }
    }
}

/// The rules of code that has no caller.
fn root(range: Range<Svma>) -> Row {
    let mut row = Row { range, ..Row::empty(SectionKind::EhFrame, false) };
    if let Some(rule) = row.registers.get_mut(usize::from(x86_64::PC)) {
        *rule = RegisterRule::Undefined;
    }
    row
}

fn placed<B: AsRef<[u8]>>(section: &Section<B>) -> Placed<'_> {
    Placed { address: section.address, bytes: section.bytes.as_ref() }
}

/// The FDE that holds `pc`, among the last few of the `count` that begin at or before it.
fn nearest(
    frames: &Frames<'_>,
    pc: u64,
    count: usize,
    offset: impl Fn(usize) -> Result<Option<usize>, CfiError>,
) -> Result<Option<Fde>, CfiError> {
    for index in (count.saturating_sub(NEIGHBOURS)..count).rev() {
        let Some(offset) = offset(index)? else { continue };
        if let Some(fde) = frames.fde(offset)?
            && fde.range.contains(&pc)
        {
            return Ok(Some(fde));
        }
    }
    Ok(None)
}
