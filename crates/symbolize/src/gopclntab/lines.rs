//! Lines and inlined calls of a Go program by `.gopclntab`, for programs without DWARF.
//!
//! An entry of a function (`_func` in runtime/runtime2.go) names tables of values: of files, of lines, and of the inlined call that an
//! instruction is of. The calls (`inlinedCall` in runtime/symtabinl.go) lie elsewhere, from `gofunc` on, which only `moduledata` says: if
//! that isn't found, or what is there are no calls, there are lines without inlined calls. A call says at which instruction of the
//! function it was made; that one's file and line are those of the caller, and its call, if it has one, is the caller.
//!
//! Only the list of functions is held in memory, a sixth of the table at the most, and the names that were asked for; the rest is read as
//! it is needed. (`strings` reads a table of up to 8 MiB at once where many names are asked for.)

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::dwarf::budget::Budget;
use crate::dwarf::{Found, Name, Place};
use crate::elf::Image;
use crate::gopclntab::module::Module;
use crate::gopclntab::values::Values;
use crate::gopclntab::{FunctionList, HEADER, Header, Version, no_base, section, u32_at, u64_at};
use crate::headers::Section;
use crate::strings::Strings;
use crate::summary::Missing;

/// Numbers of the table of values and of the data that inlined calls are in (`abi.PCDATA_InlTreeIndex`, `abi.FUNCDATA_InlTree`).
const CALL_VALUES: u32 = 2;
const CALL_TREE: u8 = 3;
/// Inlined calls in each other: more than any compiler makes.
const MAX_DEPTH: usize = 256;
/// Bytes that are read of a table of values, until they are enough.
const VALUES: [u64; 4] = [1 << 8, 1 << 12, 1 << 16, 1 << 20];
/// Steps that a byte of them costs: a file may make this read 64 MiB.
const STEPS: u64 = 16;
/// Functions that are looked at to tell whether calls are where they should be, and trees of calls that are enough.
const LOOKED_AT: usize = 512;
const ENOUGH_TREES: usize = 16;

/// Lines and inlined calls of a program.
pub(crate) struct GoLines {
    image: Rc<Image>,
    section: Section,
    header: Header,
    /// The list of functions.
    rows: Vec<u8>,
    /// What addresses in the list count from.
    base: u64,
    /// What offsets of inlined calls count from; `None` if it isn't known.
    gofunc: Option<u64>,
    strings: Strings,
    names: HashMap<u32, Rc<Name>>,
    paths: HashMap<u32, Rc<str>>,
    /// The function that was asked for last.
    last: Option<Function>,
    budget: Budget,
}

/// What an entry of a function says.
struct Entry {
    name: u32,
    files: u32,
    lines: u32,
    unit: u32,
    /// Line where it begins, 0 if not known: since Go 1.20.
    start_line: u32,
    /// Its table of calls, 0 if it has none.
    calls: u32,
    /// Where its calls are: an address, since Go 1.18 an offset.
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
    /// Where its calls are.
    tree: Option<u64>,
}

/// An inlined call.
struct InlinedCall {
    /// The function that was inlined.
    name: u32,
    /// The instruction whose place is that of the call, from the start of the function.
    parent: u32,
    /// Line where that function begins, 0 if not known: since Go 1.20.
    start_line: u32,
}

impl GoLines {
    /// Whether a file has such a table.
    pub fn is_in(image: &Image) -> bool {
        section(image).is_some_and(|section| header(image, section).is_some())
    }

    /// Most bytes that it takes in memory.
    pub fn bytes(image: &Image) -> u64 {
        section(image).map_or(0, |section| (section.size / 6).saturating_add(Strings::bytes(section)))
    }

    /// Reads the table of a file; `None` if it has none that is known.
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
            // Addresses count from 0.
            Version::Go116 => Some(0),
            _ => module.into_iter().flat_map(|module| module.gofunc).find(|&gofunc| lines.has_calls(gofunc)),
        };
        Ok(Some(lines))
    }

    /// Whether inlined calls are known too.
    pub fn has_inlined(&self) -> bool {
        self.gofunc.is_some()
    }

    /// Whether so much was read of a damaged table that no more is.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// The functions around an address.
    pub fn find(&mut self, address: u64) -> Option<Found> {
        let last = self.last.take().filter(|function| function.addresses.contains(&address));
        let function = last.map_or_else(|| self.function(address), Some)?;
        let found = self.chain(&function, u32::try_from(address - function.addresses.start).ok()?);
        self.last = Some(function);
        Some(found)
    }

    /// The inlined calls that an instruction is of, the innermost first, and the function itself.
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

    /// The call that an instruction is of, if it is of one.
    fn call(&self, function: &Function, at: u32) -> Option<InlinedCall> {
        let index = function.calls.at(at)?;
        self.read_call(function.tree?, index, function.length)
    }

    /// The call of that number in a tree, if it can be one of a function of that length.
    fn read_call(&self, tree: u64, index: u32, length: u32) -> Option<InlinedCall> {
        let has_line = self.header.version == Version::Go120;
        let (size, name, parent) = if has_line { (16, 4, 8) } else { (20, 12, 16) };
        let bytes = self.image.read_address(tree.checked_add(u64::from(index) * size)?, size);
        let start_line = if has_line { u32_at(&bytes, 12)? } else { 0 };
        let call = InlinedCall { name: u32_at(&bytes, name)?, parent: u32_at(&bytes, parent)?, start_line };
        let names = self.header.units.saturating_sub(self.header.names);
        (call.parent < length && u64::from(call.name) < names).then_some(call)
    }

    /// Whether inlined calls are where they should be if offsets count from `gofunc`.
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

    /// Whether a name begins there: behind the end of another.
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

    /// Reads the entry of a function, from the start of the list.
    fn entry(&self, at: u64) -> Option<Entry> {
        let at = self.header.list.checked_add(at)?;
        // What comes before its name, and all of it up to what lists its tables.
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

    /// Where the calls of a function are, from the data that its entry lists.
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

    /// A table of values; without any if it is damaged, or too much was read before.
    fn values(&self, table: u32, length: u32) -> Values {
        let read = |size| {
            let at = self.header.values.checked_add(table.into())?;
            let bytes = self.budget.pay(STEPS * size).then(|| self.part(at, size))?;
            Values::read(&bytes, self.header.quantum, length)
        };
        // At the start of the part is none: 0 says that there is no table.
        VALUES.into_iter().filter(|_| table != 0).find_map(read).unwrap_or_default()
    }

    /// File and line of an instruction.
    fn place(&mut self, function: &Function, at: u32) -> (Rc<str>, u32) {
        let file = function.files.at(at).and_then(|file| self.path(function.unit.checked_add(file)?));
        (file.unwrap_or_default(), function.lines.at(at).unwrap_or(0))
    }

    /// The name of the file of that number.
    fn path(&mut self, file: u32) -> Option<Rc<str>> {
        let at = u32_at(&self.part(self.header.units.checked_add(4 * u64::from(file))?, 4), 0)?;
        if let Some(path) = self.paths.get(&at) {
            return Some(Rc::clone(path));
        }
        // u32::MAX says that nothing of the file was left.
        let start = Some(at).filter(|&at| at != u32::MAX)?;
        let path: Rc<str> = self.strings.get(self.header.files.checked_add(start.into())?).into();
        self.paths.insert(at, Rc::clone(&path));
        Some(path)
    }

    /// The function whose name is there; `file` and `start_line` are where it is defined, if its name is not known yet.
    fn name(&mut self, name: u32, file: &str, start_line: u32) -> Rc<Name> {
        let (strings, names) = (&self.strings, self.header.names);
        let known = self.names.entry(name).or_insert_with(|| {
            let name = strings.get(names.saturating_add(name.into()));
            Rc::new(Name { linkage_name: String::new(), name, source_file: file.to_owned(), start_line })
        });
        Rc::clone(known)
    }

    /// At most `size` bytes of the table.
    fn part(&self, at: u64, size: u64) -> Vec<u8> {
        part(&self.image, &self.section, at, size)
    }
}

fn header(image: &Image, section: &Section) -> Option<Header> {
    Header::read(&part(image, section, 0, HEADER))
}

/// At most `size` bytes of a section.
fn part(image: &Image, section: &Section, at: u64, size: u64) -> Vec<u8> {
    let size = size.min(section.size.saturating_sub(at));
    let start = section.offset.checked_add(at);
    start.and_then(|start| image.read_up_to(start, size).ok()).unwrap_or_default()
}
