//! Lines and inlined calls of a Go program from `.gopclntab`, for programs without DWARF.
//!
//! An entry of a function (`_func` in runtime/runtime2.go) refers to value tables: of files, of lines, and of the inlined call that each
//! instruction belongs to. The calls (`inlinedCall` in runtime/symtabinl.go) are stored elsewhere, relative to `gofunc`, which only `moduledata` has:
//! if that is not found, or does not point to calls, there are lines without inlined calls. A call has the instruction of the
//! function where it was made; that instruction's file and line are those of the caller, and its call, if it has one, is the caller.
//!
//! Only the list of functions is in memory, at most a sixth of the table, and the requested names; the rest is read on
//! demand. (`strings` reads a table of up to 8 MiB at once if many names are requested.)

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::boundaries::Boundaries;
use crate::dwarf::budget::Budget;
use crate::dwarf::{Found, Name, Place};
use crate::elf::Image;
use crate::gopclntab::module::Module;
use crate::gopclntab::values::Values;
use crate::gopclntab::{FunctionList, HEADER, Header, Version, no_base, section, u32_at, u64_at};
use crate::headers::Section;
use crate::strings::Strings;
use crate::summary::Missing;

/// Numbers of the value table and of the data with inlined calls (`abi.PCDATA_InlTreeIndex`, `abi.FUNCDATA_InlTree`).
const CALL_VALUES: u32 = 2;
const CALL_TREE: u8 = 3;
/// Deepest nesting of inlined calls: more than any compiler makes.
const MAX_DEPTH: usize = 256;
/// Bytes read of a value table, in turn until they suffice.
const VALUES: [u64; 4] = [1 << 8, 1 << 12, 1 << 16, 1 << 20];
/// Steps charged per byte: a file may cause reads of 64 MiB.
const STEPS: u64 = 16;
/// Number of functions tried to validate the location of calls, and number of call trees that suffice.
const LOOKED_AT: usize = 512;
const ENOUGH_TREES: usize = 16;

/// Lines and inlined calls of a program.
pub(crate) struct GoLines {
    image: Rc<Image>,
    section: Section,
    header: Header,
    /// The list of functions.
    rows: Vec<u8>,
    /// Base of the addresses in the list.
    base: u64,
    /// Base of the offsets of inlined calls; `None` if unknown.
    gofunc: Option<u64>,
    strings: Strings,
    names: HashMap<u32, Rc<Name>>,
    paths: HashMap<u32, Rc<str>>,
    /// The last function looked up.
    last: Option<Function>,
    budget: Budget,
}

/// A function's entry.
struct Entry {
    name: u32,
    files: u32,
    lines: u32,
    unit: u32,
    /// First line, 0 if not known: since Go 1.20.
    start_line: u32,
    /// Offset of the value table of calls, 0 without calls.
    calls: u32,
    /// Location of its calls: an address, since Go 1.18 an offset.
    tree: Option<u64>,
}

/// A function and its tables.
struct Function {
    addresses: Range<u64>,
    length: u32,
    name: Rc<Name>,
    unit: u32,
    files: Values,
    lines: Values,
    calls: Values,
    /// Location of its calls.
    tree: Option<u64>,
}

/// An inlined call.
struct InlinedCall {
    /// Name offset of the inlined function.
    name: u32,
    /// Instruction whose location is that of the call, relative to the function's start.
    parent: u32,
    /// First line of the inlined function, 0 if not known: since Go 1.20.
    start_line: u32,
}

impl GoLines {
    /// Whether a file has such a table.
    pub fn is_in(image: &Image) -> bool {
        section(image).is_some_and(|section| header(image, section).is_some())
    }

    /// Returns the most bytes that it takes in memory.
    pub fn bytes(image: &Image) -> u64 {
        section(image).map_or(0, |section| (section.size / 6).saturating_add(Strings::bytes(section)))
    }

    /// Reads the table of a file; `None` if it has none in a known layout.
    pub fn read(image: &Rc<Image>) -> Result<Option<Self>, Missing> {
        let Some(section) = section(image) else { return Ok(None) };
        let Some(header) = header(image, section) else { return Ok(None) };
        let row = FunctionList::row(header.version) as u64;
        let size = (header.functions as u64).saturating_add(1).saturating_mul(row);
        let rows = part(image, section, header.list, size);
        let list = FunctionList { version: header.version, count: header.functions, rows: &rows };
        let module = match header.version {
            Version::Go116 => None,
            _ => Module::find(image, section, &list),
        };
        let text = header.text.or_else(|| module.as_ref().map(|module| module.text));
        let base = if header.version == Version::Go116 { Some(0) } else { text };
        let mut lines = Self {
            image: Rc::clone(image),
            section: section.clone(),
            header,
            base: base.ok_or_else(|| no_base(image))?,
            gofunc: None,
            strings: Strings::read(image, section)?,
            names: HashMap::new(),
            paths: HashMap::new(),
            last: None,
            budget: Budget::default(),
            rows,
        };
        lines.gofunc = match header.version {
            // Addresses are absolute.
            Version::Go116 => Some(0),
            _ => module.into_iter().flat_map(|module| module.gofunc).find(|&gofunc| lines.has_calls(gofunc)),
        };
        Ok(Some(lines))
    }

    /// Whether inlined calls are available.
    pub fn has_inlined(&self) -> bool {
        self.gofunc.is_some()
    }

    /// Whether the budget for reading a damaged table is spent.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Returns the function chain of an address.
    pub fn find(&mut self, address: u64) -> Option<Found> {
        let last = self.last.take().filter(|function| function.addresses.contains(&address));
        let function = last.map_or_else(|| self.function(address), Some)?;
        let found = self.chain(&function, u32::try_from(address - function.addresses.start).ok()?);
        self.last = Some(function);
        Some(found)
    }

    /// Adds the addresses where the answers of [`Self::find`] may change.
    pub fn boundaries(&mut self, boundaries: &mut Boundaries) {
        let begins = (0..=self.list().count).map_while(|index| self.list().begin(index));
        let addresses: Vec<u64> = begins.filter_map(|begin| self.base.checked_add(begin)).collect();
        for address in addresses {
            boundaries.push(address);
            let Some(function) = self.function(address) else { continue };
            let Function { files, lines, calls, .. } = &function;
            let ends = files.ends().chain(lines.ends()).chain(calls.ends());
            boundaries.extend(ends.map(|end| function.addresses.start.saturating_add(end.into())));
        }
    }

    /// Returns the inlined calls of an instruction, innermost first, and the function itself.
    fn chain(&mut self, function: &Function, mut at: u32) -> Found {
        let mut frames = Vec::new();
        while let Some(call) = self.call(function, at).filter(|_| frames.len() < MAX_DEPTH) {
            let (file, line) = self.place(function, at);
            let name = self.name(call.name, &file, call.start_line);
            frames.push(Place { name: Some(name), file, line });
            at = call.parent;
        }
        let (file, line) = self.place(function, at);
        frames.push(Place { name: Some(Rc::clone(&function.name)), file, line });
        Found { frames, start: Some(function.addresses.start) }
    }

    /// Returns the inlined call that an instruction belongs to, if any.
    fn call(&self, function: &Function, at: u32) -> Option<InlinedCall> {
        let index = function.calls.at(at)?;
        self.read_call(function.tree?, index, function.length)
    }

    /// Returns the call with that index in a tree, if it is valid for a function of that length.
    fn read_call(&self, tree: u64, index: u32, length: u32) -> Option<InlinedCall> {
        let has_line = self.header.version == Version::Go120;
        let (size, name, parent) = if has_line { (16, 4, 8) } else { (20, 12, 16) };
        let bytes = self.image.read_address(tree.checked_add(u64::from(index) * size)?, size);
        let start_line = if has_line { u32_at(&bytes, 12)? } else { 0 };
        let call = InlinedCall { name: u32_at(&bytes, name)?, parent: u32_at(&bytes, parent)?, start_line };
        let names = self.header.units.saturating_sub(self.header.names);
        (call.parent < length && u64::from(call.name) < names).then_some(call)
    }

    /// Whether inlined calls are found where expected if offsets are relative to `gofunc`.
    fn has_calls(&self, gofunc: u64) -> bool {
        let list = self.list();
        let step = (list.count / LOOKED_AT).max(1);
        let first_call = |index: usize| {
            let tree = self.entry(list.entry(index)?)?.tree?;
            let length = list.begin(index + 1)?.saturating_sub(list.begin(index)?);
            let call = self.read_call(gofunc.checked_add(tree)?, 0, u32::try_from(length).ok()?);
            Some(call.is_some_and(|call| self.is_name(call.name)))
        };
        let mut calls = (0..list.count).step_by(step).filter_map(first_call).take(ENOUGH_TREES).peekable();
        calls.peek().is_some() && calls.all(|is_call| is_call)
    }

    /// Whether a name begins at this offset: after the end of another.
    fn is_name(&self, name: u32) -> bool {
        let before = self.header.names.saturating_add(name.into()).checked_sub(1);
        let bytes = before.map(|before| self.part(before, 2)).unwrap_or_default();
        matches!(bytes[..], [last, first] if (last == 0 || name == 0) && first != 0)
    }

    fn list(&self) -> FunctionList<'_> {
        FunctionList { version: self.header.version, count: self.header.functions, rows: &self.rows }
    }

    fn function(&mut self, address: u64) -> Option<Function> {
        let list = self.list();
        let index = list.find(address.checked_sub(self.base)?)?;
        let (begin, end) = (list.begin(index)?, list.begin(index + 1)?);
        let entry = self.entry(list.entry(index)?)?;
        let length = u32::try_from(end - begin).unwrap_or(u32::MAX);
        let mut function = Function {
            addresses: self.base.checked_add(begin)?..self.base.checked_add(end)?,
            length,
            name: Rc::default(),
            unit: entry.unit,
            files: self.values(entry.files, length),
            lines: self.values(entry.lines, length),
            calls: self.values(entry.calls, length),
            tree: self.gofunc.zip(entry.tree).and_then(|(gofunc, tree)| gofunc.checked_add(tree)),
        };
        let (file, _) = self.place(&function, 0);
        function.name = self.name(entry.name, &file, entry.start_line);
        Some(function)
    }

    /// Reads the entry of a function at an offset from the start of the list.
    fn entry(&self, at: u64) -> Option<Entry> {
        let at = self.header.list.checked_add(at)?;
        // The fields before its name, and its size up to the list of tables.
        let (first, size) = match self.header.version {
            Version::Go116 => (8, 44),
            Version::Go118 => (4, 40),
            Version::Go120 => (4, 44),
        };
        let bytes = self.part(at, size + 12);
        let number = |index: usize| u32_at(&bytes, first + 4 * index);
        let (tables, datas) = (number(6)?, *bytes.get(size as usize - 1)?);
        let calls = if tables > CALL_VALUES { u32_at(&bytes, size as usize + 8)? } else { 0 };
        let tree =
            if datas > CALL_TREE { self.tree(at.checked_add(size + 4 * u64::from(tables))?) } else { None };
        let start_line = if self.header.version == Version::Go120 { number(8)? } else { 0 };
        let (name, files, lines, unit) = (number(0)?, number(4)?, number(5)?, number(7)?);
        Some(Entry { name, files, lines, unit, start_line, calls, tree })
    }

    /// Returns the location of a function's calls, from the data listed in its entry.
    fn tree(&self, datas: u64) -> Option<u64> {
        let index = u64::from(CALL_TREE);
        if self.header.version == Version::Go116 {
            let address = self.section.address.checked_add(datas)?.checked_next_multiple_of(8)?;
            let at = (address - self.section.address).checked_add(8 * index)?;
            return u64_at(&self.part(at, 8), 0).filter(|&tree| tree != 0);
        }
        let tree = u32_at(&self.part(datas.checked_add(4 * index)?, 4), 0)?;
        (tree != u32::MAX).then_some(tree.into())
    }

    /// Reads a value table; empty if it is damaged, or the budget is spent.
    fn values(&self, table: u32, length: u32) -> Values {
        let read = |size| {
            let at = self.header.values.checked_add(table.into())?;
            let bytes = self.budget.pay(STEPS * size).then(|| self.part(at, size))?;
            Values::read(&bytes, self.header.quantum, length)
        };
        // A table offset of 0 means that the function has none.
        VALUES.into_iter().filter(|_| table != 0).find_map(read).unwrap_or_default()
    }

    /// Returns file and line of an instruction.
    fn place(&mut self, function: &Function, at: u32) -> (Rc<str>, u32) {
        let file = function.files.at(at).and_then(|file| self.path(function.unit.checked_add(file)?));
        (file.unwrap_or_default(), function.lines.at(at).unwrap_or(0))
    }

    /// Returns the name of the file with that number.
    fn path(&mut self, file: u32) -> Option<Rc<str>> {
        let at = u32_at(&self.part(self.header.units.checked_add(4 * u64::from(file))?, 4), 0)?;
        if let Some(path) = self.paths.get(&at) {
            return Some(Rc::clone(path));
        }
        // u32::MAX means that the linker dropped the file.
        let start = Some(at).filter(|&at| at != u32::MAX)?;
        let path: Rc<str> = self.strings.get(self.header.files.checked_add(start.into())?).into();
        self.paths.insert(at, Rc::clone(&path));
        Some(path)
    }

    /// Returns the function with that name offset; `file` and `start_line` are its definition's, if it is new.
    fn name(&mut self, name: u32, file: &str, start_line: u32) -> Rc<Name> {
        let (strings, names) = (&self.strings, self.header.names);
        let known = self.names.entry(name).or_insert_with(|| {
            let name = strings.get(names.saturating_add(name.into()));
            Rc::new(Name { linkage_name: String::new(), name, source_file: file.to_owned(), start_line })
        });
        Rc::clone(known)
    }

    /// Reads at most `size` bytes of the table.
    fn part(&self, at: u64, size: u64) -> Vec<u8> {
        part(&self.image, &self.section, at, size)
    }
}

fn header(image: &Image, section: &Section) -> Option<Header> {
    Header::read(&part(image, section, 0, HEADER))
}

/// Reads at most `size` bytes of a section.
fn part(image: &Image, section: &Section, at: u64, size: u64) -> Vec<u8> {
    let size = size.min(section.size.saturating_sub(at));
    let start = section.offset.checked_add(at);
    start.and_then(|start| image.read_up_to(start, size).ok()).unwrap_or_default()
}
