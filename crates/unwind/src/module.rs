//! The unwind sections of one ELF file.
//!
//! Creating a module reads only the header of `.eh_frame_hdr`. Everything else is decoded on demand, and an index is
//! built only for a section that comes without one.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use once_cell::race::OnceBox;

use crate::aarch64;
use crate::address::Svma;
use crate::arm::exidx::{self, Placed};
use crate::cfi::{self, Bases, CfiError, Fde, Frames, Header, Index, Scratch, SectionKind};
use crate::isa::Isa;
use crate::made;
use crate::row::{Expression, RegisterRule, Row};
use crate::rule::Rule;
use crate::table::{self, Functions, Heads, Lookup, Table};
use crate::x86_64;

/// Number of functions before the nearest one that are tried if the nearest does not hold the address: linkers keep
/// entries of length 0.
const NEIGHBOURS: usize = 4;

/// The bytes of a section and its stated address.
#[derive(Clone, Debug)]
pub struct Section<B> {
    /// Stated address of the first byte.
    pub address: Svma,
    /// The content.
    pub bytes: B,
}

/// The sections of a file that matter for unwinding. Any of them may be absent.
#[derive(Clone, Debug)]
pub struct Sections<B> {
    /// `.eh_frame`. If only the program header `PT_GNU_EH_FRAME` is known, the bytes may extend beyond the section's
    /// end.
    pub eh_frame: Option<Section<B>>,
    /// `.eh_frame_hdr`, or the target of `PT_GNU_EH_FRAME`.
    pub eh_frame_hdr: Option<Section<B>>,
    /// `.debug_frame`, uncompressed.
    pub debug_frame: Option<Section<B>>,
    /// `.ARM.exidx`, or the target of `PT_ARM_EXIDX`: the function table of 32-bit ARM.
    pub exidx: Option<Section<B>>,
    /// `.ARM.extab`: unwind instructions that do not fit into that table. Its entries are found by address, so if
    /// sections are not known, the whole segment that holds it can be used.
    pub extab: Option<Section<B>>,
    /// Instruction set of the file.
    pub isa: Isa,
    /// Start of `.text`, the base of text-relative pointers.
    pub text: Option<Svma>,
    /// Start of `.got`, the base of data-relative pointers.
    pub got: Option<Svma>,
    /// Entry point of the process (`e_entry`), if the file has one. Code there without rules has no caller.
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

/// Number of bytes at the entry point that are taken to be the start routine if it has no rules. It is 34 to 47 bytes
/// long in glibc and 22 in musl, and the next function is aligned to 16.
const ENTRY: u64 = 48;

/// The code around an address.
pub(crate) enum Extent {
    /// A function with rules.
    Function(Range<Svma>),
    /// Code without rules, which begins at `start`.
    Gap { start: Svma },
}

/// The unwind information of one ELF file, shared by all processes that map it.
#[derive(Debug)]
pub struct Module<B> {
    sections: Sections<B>,
    /// Identifies the module among the last 2^32 modules created.
    number: u32,
    /// Header of `.eh_frame_hdr`, if it has a searchable table.
    header: Option<Header>,
    /// Precomputed rules for return addresses, if available.
    table: Option<Table>,
    eh_index: OnceBox<Index>,
    debug_index: OnceBox<Index>,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// Creates a module. Reads only the header of `.eh_frame_hdr`, so this never fails.
    pub fn new(sections: Sections<B>) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (eh_index, debug_index) = (OnceBox::new(), OnceBox::new());
        let mut module = Module { sections, number, header: None, table: None, eh_index, debug_index };
        module.header = module.parse_header();
        module
    }

    /// Adds the table of this module's file, which walks then ask first for the rules of callers. The table of
    /// another file gives wrong frames; check with [`Table::is_of`].
    pub fn with_table(self, table: Table) -> Self {
        Module { table: Some(table), ..self }
    }

    /// Returns the sections that the module was created with.
    pub fn into_sections(self) -> Sections<B> {
        self.sections
    }

    /// Returns the table, if there is one.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Returns the table's rule for the call that ends with the byte at `call`. `None` without a table, or if it has no
    /// compact rule for that call.
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

    /// Returns the bases of pointers in `.eh_frame_hdr`.
    fn header_bases(&self, section: &Section<B>) -> Bases {
        Bases { data: Some(section.address.0), ..self.bases(section) }
    }

    /// Returns the size in bytes of the sections and the table. Does not count indexes that are built for sections
    /// without one.
    pub fn bytes(&self) -> usize {
        let Sections { eh_frame, eh_frame_hdr, debug_frame, exidx, extab, .. } = &self.sections;
        let sections = [eh_frame, eh_frame_hdr, debug_frame, exidx, extab].into_iter().flatten();
        let bytes = sections.map(|section| section.bytes.as_ref().len()).fold(0, usize::saturating_add);
        bytes.saturating_add(self.table.as_ref().map_or(0, Table::bytes))
    }

    /// Returns the sections that the module was created with.
    pub fn sections(&self) -> &Sections<B> {
        &self.sections
    }

    /// Returns the full row of rules for the instruction at `pc`, or `None` if the file has none. For a return
    /// address, ask for the byte before it: the call may be the last instruction of its function.
    pub fn row(&self, pc: Svma) -> Result<Option<Row>, CfiError> {
        self.row_with(pc, &mut Scratch::default())
    }

    /// Returns the bytes of an expression in one of this module's rows.
    pub fn expression(&self, row: &Row, expression: Expression) -> &[u8] {
        expression.bytes(self.text(row.section))
    }

    /// Returns the instruction set of the file.
    pub fn isa(&self) -> Isa {
        self.sections.isa
    }

    /// Returns whether the file has unwind information for any code.
    pub(crate) fn has_info(&self) -> bool {
        let Sections { eh_frame, debug_frame, exidx, .. } = &self.sections;
        eh_frame.is_some() || debug_frame.is_some() || exidx.is_some()
    }

    /// Returns the bytes that expressions in rows of that section index into.
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

    /// Returns the rule for the instruction at `pc`, if the module has the usual layout and the rule does not need a
    /// full row.
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

    /// As [`Module::row`], with buffers to reuse.
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
        // `.ARM.exidx` comes last, because it is only valid at calls.
        if let Some(exidx) = &self.sections.exidx
            && self.sections.isa == Isa::Arm
        {
            return exidx::row_at(placed(exidx), self.sections.extab.as_ref().map(placed), pc);
        }
        Ok(self.entry().filter(|range| range.contains(&pc)).map(root))
    }

    /// Returns the row for a frame whose program counter is `pc`. Where a stub pushes the return address and jumps to a function, that
    /// holds from its beginning, but the file may say so only behind a first instruction, `bti`, which changes nothing.
    pub(crate) fn frame_row(&self, pc: Svma, scratch: &mut Scratch) -> Result<Option<Row>, CfiError> {
        let Some(row) = self.row_with(pc, scratch)? else { return Ok(None) };
        if self.sections.isa != Isa::Aarch64 || row.range.end.0 - row.range.start.0 != 4 {
            return Ok(Some(row));
        }
        let is_pushed = |row: &Row| matches!(row.register(aarch64::PC), RegisterRule::Offset(0..));
        let next = if is_pushed(&row) { None } else { self.row_with(row.range.end, scratch).ok().flatten() };
        let next = next.filter(|next| next.cfa == row.cfa && is_pushed(next));
        Ok(Some(match next {
            Some(next) => Row { range: row.range, ..next },
            None => row,
        }))
    }

    /// Returns the range of the start routine, which has no caller.
    pub(crate) fn entry(&self) -> Option<Range<Svma>> {
        let start = self.sections.entry.filter(|_| self.sections.isa == Isa::X86_64)?;
        Some(start..Svma(start.0.saturating_add(ENTRY)))
    }

    /// Returns `.ARM.exidx` and `.ARM.extab`.
    pub(crate) fn exidx(&self) -> Option<(Placed<'_>, Option<Placed<'_>>)> {
        Some((placed(self.sections.exidx.as_ref()?), self.sections.extab.as_ref().map(placed)))
    }

    /// Returns the number of functions with rules in the preferred section.
    pub fn function_count(&self) -> usize {
        self.functions().map_or(0, |functions| functions.len())
    }

    /// Returns all functions with rules in the preferred section: the first section that has any.
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

    /// Returns the functions in `.debug_frame`.
    fn in_debug_frame(&self) -> Option<Functions<'_>> {
        let frames = self.frames(self.sections.debug_frame.as_ref()?, SectionKind::DebugFrame);
        let index = self.debug_index.get_or_init(|| Box::new(Index::build(&frames)));
        Some(Functions::of_index(frames, index))
    }

    /// Returns the code within a range that has no rules, in order. The start routine counts as having rules.
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

    /// Returns the function with rules that holds `pc`, or the code without rules around it.
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

    /// Returns a function near `pc` that holds it, or the last function of a section that begins at or before it.
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

    /// Returns whether there is at most one section, so that code without rules in it has none elsewhere either.
    pub(crate) fn has_one_section(&self) -> bool {
        self.sections.eh_frame.is_none() || self.sections.debug_frame.is_none()
    }

    /// Returns `.eh_frame_hdr`, if it can be searched.
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

/// Returns the row of code that has no caller.
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

/// Returns the FDE that holds `pc`, among the last few of the `count` that begin at or before it.
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
