//! All function names of a file and its debug file: symbol tables, `.gnu_debugdata`, Go's table, PLT stubs.

use std::rc::Rc;

use object::elf::{EM_X86_64, SHT_DYNSYM, SHT_SYMTAB};

use crate::beginnings::Beginnings;
use crate::boundaries::Boundaries;
use crate::elf::Image;
use crate::extent::{Extents, entries, starts};
use crate::headers::Section;
use crate::job::Answer;
use crate::plt::Plt;
use crate::strings::Strings;
use crate::summary::Missing;
use crate::symtab::{Named, Symtab};

/// Assumed size of `_start` without a symbol, in bytes: it is 34 to 47 long in glibc and musl.
const START: u64 = 48;

/// gdb's name for the code that signal handlers return to.
const SIGNAL_RETURN: &str = "<signal handler called>";
/// Code of `__restore_rt`: system call 15, `rt_sigreturn` (asm/unistd_64.h), as glibc and musl write it.
const RETURNS: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

/// The functions of a file from all sources.
#[derive(Debug)]
pub(crate) struct FileSymbols {
    /// The tables, best first.
    tables: Vec<Symtab>,
    plt: Plt,
    image: Rc<Image>,
    /// Entry point, 0 if there is none.
    entry: u64,
    /// Start addresses of the unwind entries, sorted; read on first use.
    starts: Option<Vec<u64>>,
    /// Unwind information to look up functions without a symbol; the inner `None` if there is none. Read on first use.
    extents: Option<Option<Extents>>,
    /// Beginnings of functions without unwind information either. Read on first use.
    beginnings: Option<Beginnings>,
}

/// Length assumed for a symbol without a size if no unwind information has its function's end. Code further on is named in pieces of that
/// length.
const REACH: u64 = 4096;

/// The last of the compiler's startup functions before a program's code, which may have no symbols (GHC's has few), and its length: it only
/// jumps on.
const LAST_OF_START: (&str, u64) = ("frame_dummy", 16);

/// Returns the addresses at which [`within`] may divide a symbol without a size.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = u64> {
    let from = move |begin: u64| {
        let next = |address: &u64| address.checked_add(REACH);
        std::iter::successors(Some(begin), next).take_while(move |&address| address < end)
    };
    from(start.saturating_add(LAST_OF_START.1)).chain(from(start))
}

/// Addresses at which [`FileSymbols::find`] finds code that signal handlers return to, and the next ones.
fn signal_returns(image: &Image) -> Vec<u64> {
    let mut found = Vec::new();
    let sections = image.sections.iter().filter(|section| section.executable && image.machine == EM_X86_64);
    for section in sections {
        let code = image.read(section).unwrap_or_default();
        let starts = (0..code.len()).filter(|&at| RETURNS.iter().any(|known| code[at..].starts_with(known)));
        let address = |at: usize| section.address.saturating_add(at as u64);
        found.extend(starts.flat_map(|at| [address(at).saturating_sub(1), address(at)]));
    }
    found
}

/// Limits a symbol without a size to where its function certainly extends: up to the start of another one.
fn within(named: Named, address: u64, starts: &[u64]) -> Named {
    let behind = starts.partition_point(|&start| start <= named.start);
    let after = starts.partition_point(|&start| start <= address);
    let next = starts.get(after).copied().unwrap_or(u64::MAX).min(named.end);
    let (begin, end) = match after.checked_sub(1) {
        // One function that begins at the symbol, or around it.
        Some(last) if after == behind && has_entry(starts[last], named.start) => (named.start, next),
        Some(last) if after > behind => (starts[last], next),
        _ => {
            let (last, length) = LAST_OF_START;
            let own = if named.linkage_name == last { length } else { REACH };
            match (address - named.start).checked_sub(own) {
                None => (named.start, named.start.saturating_add(own).min(next)),
                Some(behind) => {
                    let begin = address - behind % REACH;
                    (begin, begin.saturating_add(REACH).min(next))
                }
            }
        }
    };
    let near = begin.checked_sub(named.start).filter(|&offset| offset > 0);
    Named { start: begin, end, near, ..named }
}

/// Whether the unwind entry that begins at `entry` covers the symbol too: an assembler may put instructions before it.
fn has_entry(entry: u64, symbol: u64) -> bool {
    symbol - entry <= 16
}

impl FileSymbols {
    /// Reads the tables of `image`, and of `debug` or `mini` if `image` is stripped; for a stripped Go program also Go's own table.
    pub fn read(
        image: &Rc<Image>,
        debug: Option<&Rc<Image>>,
        mini: Option<&Rc<Image>>,
        answer: &mut Answer,
    ) -> Self {
        let mut tables = Vec::new();
        let take = |found: Result<Option<Symtab>, Missing>, answer: &mut Answer| {
            found.unwrap_or_else(|missing| {
                answer.miss(missing);
                None
            })
        };
        let full = [Some(image), debug].into_iter().flatten().find_map(|image| {
            let table = take(Symtab::read(image, SHT_SYMTAB), answer)?;
            (table.len() > 0).then_some(table)
        });
        let is_stripped = full.is_none();
        tables.extend(full);
        if is_stripped {
            let of_go = take(Symtab::read_go(image), answer);
            let has_go = of_go.is_some();
            tables.extend(of_go);
            tables.extend(take(Symtab::read(image, SHT_DYNSYM), answer));
            if let Some(local) = mini {
                tables.extend(take(Symtab::read(local, SHT_SYMTAB), answer));
            } else if !has_go {
                answer.miss(Missing::NoSymbols);
            }
        }
        answer.summary.functions = tables.iter().map(Symtab::len).sum();
        Self {
            tables,
            plt: Plt::new(image),
            image: Rc::clone(image),
            entry: image.entry,
            starts: None,
            extents: None,
            beginnings: None,
        }
    }

    /// Returns the approximate memory of the tables of `image`, in bytes, as an upper bound.
    pub fn bytes(image: &Image) -> u64 {
        let tables = [SHT_SYMTAB, SHT_DYNSYM].iter().filter_map(|&kind| image.section_of(kind));
        let strings = |table: &Section| image.sections.get(table.link).map_or(0, Strings::bytes);
        // The rows as in the file, 24 bytes each, and the derived data, 40 bytes each.
        let tables: u64 =
            tables.map(|table| table.size.saturating_mul(3).saturating_add(strings(table))).sum();
        // Names and rows are part of the table, whose copy is freed once they are extracted.
        let of_go = match image.section_of(SHT_SYMTAB) {
            None => image.section(".gopclntab").map_or(0, |section| section.size.saturating_mul(2)),
            Some(_) => 0,
        };
        tables.saturating_add(of_go)
    }

    /// Adds the addresses where the answers of [`Self::find`] and [`Self::nameless_start`] may change.
    pub fn boundaries(&mut self, boundaries: &mut Boundaries) {
        let image = &self.image;
        for (start, end, has_size) in self.tables.iter().flat_map(Symtab::bounds) {
            boundaries.extend([start, end]);
            if !has_size {
                boundaries.extend(pieces(start, end));
            }
        }
        boundaries.extend(entries(image).into_iter().flat_map(|(start, end)| [start, end]));
        boundaries.extend(self.beginnings.get_or_insert_with(|| Beginnings::read(image)).all());
        boundaries.extend(Plt::boundaries(image));
        boundaries.extend([self.entry, self.entry.saturating_add(START)]);
        boundaries.extend(signal_returns(image));
    }

    /// Returns the function that contains `address`.
    pub fn find(&mut self, address: u64) -> Option<Named> {
        if let Some(found) = self.in_tables(address).or_else(|| self.plt.find(address)) {
            return Some(found);
        }
        self.start(address).or_else(|| self.signal_return(address))
    }

    /// Returns the start of the function without a symbol that contains `address`, from the unwind information, which survives stripping, or where
    /// there is none from the calls in the code.
    pub fn nameless_start(&mut self, address: u64) -> Option<u64> {
        if let Some(start) = self.unwound_start(address) {
            return Some(start);
        }
        let image = &self.image;
        let start = self.beginnings.get_or_insert_with(|| Beginnings::read(image)).start(address)?;
        // A function with a known end ends before this one.
        let is_known = self.unwound_start(start).is_some() || self.in_tables(start).is_some();
        (!is_known).then_some(start)
    }

    /// Returns the start of the unwind entry that covers `address`.
    fn unwound_start(&mut self, address: u64) -> Option<u64> {
        let image = &self.image;
        self.extents.get_or_insert_with(|| Extents::read(image)).as_ref()?.start(address)
    }

    /// Returns the function that starts after `address`, the byte before a return address, if that byte is not in code.
    ///
    /// Such a function was never called: the stack of a coroutine is made by hand, with the first byte of a function as its outermost return
    /// address (`makecontext`). Otherwise a call may be the last instruction of a function without a symbol, which has unwind
    /// information; that is checked.
    pub fn begun_at(&mut self, address: u64) -> Option<u64> {
        let start = address.checked_add(1)?;
        let found = self.in_tables(start).filter(|found| found.start == start)?;
        self.unwound_start(address).is_none().then_some(found.start)
    }

    /// Returns the code that a signal handler returns to. It was never called, so the address looked up, the byte before it, is not part of any
    /// function.
    fn signal_return(&self, address: u64) -> Option<Named> {
        if self.image.machine != EM_X86_64 {
            return None;
        }
        let start = address.checked_add(1)?;
        let code = self.image.read_address(start, 9);
        let found = RETURNS.iter().find(|known| code.starts_with(known))?;
        let end = start.checked_add(found.len() as u64)?;
        Some(Named::new(SIGNAL_RETURN.to_owned(), address, end))
    }

    /// Returns the function whose address is in a slot of the global offset table.
    pub fn slot(&mut self, address: u64) -> Option<String> {
        self.plt.slot(address)
    }

    fn in_tables(&mut self, address: u64) -> Option<Named> {
        let found = self.tables.iter().find_map(|table| table.find(address))?;
        if found.has_size {
            return Some(found);
        }
        let image = &self.image;
        let starts = self.starts.get_or_insert_with(|| starts(image));
        Some(within(found, address, starts))
    }

    /// Returns the entry code of a process, the root of every stack of its first thread. Stripping removes its name,
    /// but the file's header still has its address.
    fn start(&mut self, address: u64) -> Option<Named> {
        let is_inside = self.entry != 0 && (self.entry..self.entry.saturating_add(START)).contains(&address);
        // If its symbol exists, that has its end.
        (is_inside && self.in_tables(self.entry).is_none())
            .then(|| Named::new("_start".to_owned(), self.entry, self.entry.saturating_add(START)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64, starts: &[u64]) -> (String, u64, u64) {
        let symbol = Named { has_size: false, ..Named::new("_Z6kernelv".to_owned(), 0x1_0000, 0x8_0000) };
        let found = within(symbol, address, starts);
        (found.shown(), found.start, found.end)
    }

    #[test]
    fn a_symbol_without_size_names_its_function_and_what_is_behind_only_as_near() {
        let starts = [0x8000, 0x1_0000, 0x1_9000, 0x4_0b04, 0x4_2000];
        assert_eq!(at(0x1_0000, &starts), ("_Z6kernelv".to_owned(), 0x1_0000, 0x1_9000));
        assert_eq!(at(0x1_8fff, &starts), ("_Z6kernelv".to_owned(), 0x1_0000, 0x1_9000));
        assert_eq!(at(0x4_0b10, &starts), ("near kernel+0x30b04".to_owned(), 0x4_0b04, 0x4_2000));
        assert_eq!(at(0x7_0000, &starts), ("near kernel+0x32000".to_owned(), 0x4_2000, 0x8_0000));
    }

    #[test]
    fn code_behind_that_of_the_start_is_not_its() {
        let symbol = Named { has_size: false, ..Named::new("frame_dummy".to_owned(), 0x1000, 0x1078) };
        assert_eq!(within(symbol.clone(), 0x1004, &[]).shown(), "frame_dummy");
        assert_eq!(within(symbol, 0x1025, &[]).shown(), "near frame_dummy+0x10");
    }

    #[test]
    fn without_unwind_information_it_reaches_a_page() {
        for starts in [&[][..], &[0x100], &[0x9_0000]] {
            assert_eq!(at(0x1_0fff, starts), ("_Z6kernelv".to_owned(), 0x1_0000, 0x1_1000), "{starts:x?}");
            assert_eq!(at(0x1_1001, starts), ("near kernel+0x1000".to_owned(), 0x1_1000, 0x1_2000));
        }
    }
}
