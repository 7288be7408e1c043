//! The symbols of one file without the file: a table of address ranges, each with its function, inlined calls and line.
//!
//! Made once, where a whole file is at hand ([`CompactSymbols::of`]), and looked up without it, with the same answers. It takes a few percent of a
//! file with DWARF. The bytes are columns of variable-length numbers, compressed; a column of a large file is a few megabytes, which a look-up
//! reads from start to end.

mod build;
mod columns;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::SymbolDetail;
use crate::compact::columns::Columns;
use crate::readable;

/// First bytes of a table.
const MAGIC: [u8; 8] = *b"plumbsy\x01";
/// Most bytes of a table before compression.
const MOST: usize = 1 << 30;
/// Level of compression: seconds for the largest files.
const LEVEL: i32 = 12;

/// A function at an address, or one that was inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactCall {
    /// Demangled name; empty for a function without a symbol.
    pub function: String,
    /// Name of the symbol; empty if there is none.
    pub linkage_name: String,
    /// First address of a function without a symbol, in the file's address space.
    pub nameless_start: Option<u64>,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line counted from 1; 0 if unknown.
    pub line: u32,
    /// First line of the function; 0 if unknown.
    pub start_line: u32,
    /// Whether the compiler put it into its caller.
    pub inlined: bool,
}

/// Why bytes are not a table of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactError {
    /// The first bytes are those of another kind of file, or of another version of the table.
    Magic,
    /// The bytes end early, or refer to missing entries.
    Damaged,
}

impl std::fmt::Display for CompactError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Magic => "the bytes are no table of symbols that this version reads",
            Self::Damaged => "the table of symbols is damaged",
        })
    }
}

impl std::error::Error for CompactError {}

/// The symbols of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactSymbols {
    detail: SymbolDetail,
    /// Address, offset in the file and size of each loaded part.
    segments: Vec<(u64, u64, u64)>,
    /// Each text once; the first is empty.
    texts: Vec<String>,
    functions: Vec<Function>,
    scopes: Vec<Scope>,
    columns: Columns,
}

/// A function. Texts are numbers of [`CompactSymbols::texts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Function {
    /// 0 if it is the linkage name demangled.
    name: u32,
    linkage_name: u32,
    start_line: u32,
    nameless_start: Option<u64>,
}

/// A function with those that it was inlined into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Scope {
    function: u32,
    /// The number of the scope that it was inlined into, plus one; 0 if it was not. Always a smaller number.
    outer: u32,
    /// File and line of the call.
    file: u32,
    line: u32,
    inlined: bool,
}

/// The common part of a range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    /// Number of the innermost scope plus one; 0 where nothing is known.
    scope: u32,
    file: u32,
    line: u32,
}

impl CompactSymbols {
    /// Reads a table's bytes.
    ///
    /// # Errors
    /// The bytes are something else, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CompactError> {
        let packed = bytes.strip_prefix(&MAGIC).ok_or(CompactError::Magic)?;
        let damaged = |_| CompactError::Damaged;
        let (length, packed) = packed.split_first_chunk().ok_or(CompactError::Damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > MOST {
            return Err(CompactError::Damaged);
        }
        let plain = zstd::bulk::decompress(packed, length).map_err(|_| CompactError::Damaged)?;
        postcard::from_bytes(&plain).map_err(damaged)
    }

    /// Returns the table as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let plain = postcard::to_stdvec(self).unwrap_or_default();
        let length = u32::try_from(plain.len()).unwrap_or(u32::MAX);
        let packed = zstd::bulk::compress(&plain, LEVEL).unwrap_or_default();
        [&MAGIC[..], &length.to_le_bytes(), &packed].concat()
    }

    /// Returns how detailed the file's information was.
    pub fn detail(&self) -> SymbolDetail {
        self.detail
    }

    /// Converts an offset in the file into the address there; `None` if nothing of it is loaded.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|&(address, start, size)| {
            let into = offset.checked_sub(start).filter(|&into| into < size)?;
            address.checked_add(into)
        })
    }

    /// Returns the functions at each of the addresses of the file, outermost first; none where nothing is known.
    pub fn resolve(&self, addresses: &[u64]) -> Vec<Vec<CompactCall>> {
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        order.sort_unstable_by_key(|&index| addresses[index]);
        let sorted: Vec<u64> = order.iter().map(|&index| addresses[index]).collect();
        let places = self.columns.find(&sorted);
        let names = self.names(&places);
        let mut found = vec![Vec::new(); addresses.len()];
        order.into_iter().zip(places).for_each(|(index, place)| found[index] = self.calls(place, &names));
        found
    }

    /// The functions of a place, outermost first.
    fn calls(&self, place: Position, names: &HashMap<u32, String>) -> Vec<CompactCall> {
        let Position { scope, mut file, mut line } = place;
        let mut calls = Vec::new();
        for scope in self.outwards(scope) {
            let function = self.functions.get(scope.function as usize).copied().unwrap_or_default();
            calls.push(CompactCall {
                function: names.get(&scope.function).cloned().unwrap_or_default(),
                linkage_name: self.text(function.linkage_name).to_owned(),
                nameless_start: function.nameless_start,
                file: self.text(file).to_owned(),
                line,
                start_line: function.start_line,
                inlined: scope.inlined,
            });
            (file, line) = (scope.file, scope.line);
        }
        calls.reverse();
        calls
    }

    /// The readable names of the functions of these places.
    fn names(&self, places: &[Position]) -> HashMap<u32, String> {
        let functions =
            places.iter().flat_map(|place| self.outwards(place.scope)).map(|scope| scope.function);
        let functions: HashSet<u32> = functions.collect();
        let known = |&number: &u32| Some((number, self.functions.get(number as usize)?));
        let (mangled, others): (Vec<_>, Vec<_>) =
            functions.iter().filter_map(known).partition(|(_, function)| function.name == 0);
        let linkage_names: Vec<&str> =
            mangled.iter().map(|(_, function)| self.text(function.linkage_name)).collect();
        let demangled = mangled.iter().map(|&(number, _)| number).zip(readable::all(&linkage_names));
        let others =
            others.into_iter().map(|(number, function)| (number, self.text(function.name).to_owned()));
        others.chain(demangled).collect()
    }

    /// The scope with that number, plus one, and those around it.
    fn outwards(&self, scope: u32) -> impl Iterator<Item = &Scope> {
        // Only a damaged table has a scope around itself.
        let outer = |&at: &u32| Some(self.scopes.get(at.checked_sub(1)? as usize)?.outer.min(at - 1));
        let numbers = std::iter::successors(Some(scope), outer);
        numbers.map_while(|at| self.scopes.get(at.checked_sub(1)? as usize))
    }

    fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }
}
