//! The kernel's symbol table in a form that is small, fast to search, and the same in memory and on
//! disk: rows of 16 bytes, sorted by module and address, then all names.
//!
//! Invariant: every offset in bytes from disk is checked on lookup, so damage costs only names.

use std::collections::HashMap;
use std::io::{self, Read};

use crate::table::{Bind, Symbol, better};

/// Longest table that is read: 50 times a distribution kernel's.
const MAX_BYTES: u64 = 512 << 20;
/// Largest length of a module's last symbol, as in perf.
const PAGE: u64 = 4096;
/// Size of a read; the kernel returns a page at a time.
const CHUNK: usize = 1 << 16;
/// Size of a row: address (8 bytes), name offset (4), binding (1), whether it is code (1), padding (2).
const ROW: usize = 16;
/// Pseudo-modules in the kernel's table whose code comes and goes without a module being loaded.
const FLEETING: [&str; 3] = ["[bpf]", "[__builtin__ftrace]", "[__builtin__kprobes]"];

/// The table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kallsyms {
    /// Names of modules, empty for the kernel itself, each with the number after its last row.
    modules: Vec<(String, usize)>,
    rows: Vec<u8>,
    /// The names, each after its length in two bytes.
    names: Vec<u8>,
}

/// A parsed line of the kernel's text.
struct Line<'t> {
    start: u64,
    kind: u8,
    name: &'t [u8],
    module: &'t [u8],
}

impl Kallsyms {
    /// Parses the kernel's text; `None` if it hides addresses.
    pub fn read(text: impl Read) -> io::Result<Option<Self>> {
        let mut found = Found::default();
        let mut text = text.take(MAX_BYTES);
        let mut buffer = vec![0; CHUNK];
        let mut filled = 0;
        loop {
            let read = text.read(&mut buffer[filled..])?;
            filled += read;
            let end = match buffer[..filled].iter().rposition(|&byte| byte == b'\n') {
                Some(newline) => newline + 1,
                // The last line, or one longer than any valid one.
                None if read == 0 || filled == CHUNK => filled,
                None => continue,
            };
            buffer[..end].split(|&byte| byte == b'\n').filter_map(line).for_each(|line| found.add(&line));
            buffer.copy_within(end..filled, 0);
            filled -= end;
            if read == 0 && filled == 0 {
                break;
            }
        }
        Ok(found.is_shown.then(|| found.sorted()))
    }

    /// Serializes, for the cache, the part that is valid until a module is loaded.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut modules = Vec::new();
        let mut rows = Vec::new();
        let mut start = 0;
        for (name, end) in &self.modules {
            if !FLEETING.contains(&name.as_str()) {
                rows.extend_from_slice(&self.rows[start * ROW..end * ROW]);
                modules.push((name, rows.len() / ROW));
            }
            start = *end;
        }
        let mut bytes = Vec::with_capacity(rows.len() + self.names.len() + (1 << 12));
        bytes.extend((modules.len() as u32).to_le_bytes());
        for (name, end) in modules {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend((end as u64).to_le_bytes());
        }
        bytes.extend(rows);
        bytes.extend(&self.names);
        bytes
    }

    /// Reads the output of [`Kallsyms::to_bytes`]; `None` if it is damaged.
    pub fn from_bytes(mut bytes: Vec<u8>) -> Option<Self> {
        let mut rest = &bytes[..];
        let mut modules = Vec::new();
        let mut rows = 0;
        for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
            let length = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
            let (name, after) = rest.split_at_checked(length)?;
            rest = after;
            let end = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
            if end < rows {
                return None;
            }
            rows = end;
            modules.push((std::str::from_utf8(name).ok()?.to_owned(), end));
        }
        let names = rest.get(rows.checked_mul(ROW)?..)?.to_vec();
        let at = bytes.len() - rest.len();
        bytes.truncate(at + rows * ROW);
        bytes.drain(..at);
        bytes.shrink_to_fit();
        Some(Self { modules, rows: bytes, names })
    }

    /// Returns the number of symbols in `module`.
    pub fn len(&self, module: &str) -> usize {
        self.range(module).map_or(0, |(start, end)| end - start)
    }

    /// Whether `address` lies within the symbols of `module`.
    pub fn has(&self, module: &str, address: u64) -> bool {
        self.range(module).is_some_and(|(start, end)| {
            start < end && self.start(start) <= address && address < self.end(end)
        })
    }

    /// Returns name and first address of the function at `address` in `module`; if the module is wrong (code that was
    /// loaded later, such as BPF programs), in the one with the nearest preceding symbol.
    pub fn find(&self, module: &str, address: u64) -> Option<(String, u64)> {
        if let Some(found) = self.range(module).and_then(|range| self.find_in(range, address)) {
            return Some(found);
        }
        let ranges = self.modules.iter().filter_map(|(module, _)| self.range(module));
        ranges.filter_map(|range| self.find_in(range, address)).max_by_key(|&(_, start)| start)
    }

    /// Returns the first address of the function at `address`, and the start of the next symbol in its module.
    pub fn extent(&self, module: &str, address: u64) -> Option<(u64, u64)> {
        let (_, start) = self.find(module, address)?;
        let (first, last) = self.range(module)?;
        let end = self.partition(first, last, |other| other <= start);
        Some((start, if end < last { self.start(end) } else { self.end(last) }))
    }

    fn find_in(&self, (first, last): (usize, usize), address: u64) -> Option<(String, u64)> {
        let end = self.partition(first, last, |start| start <= address);
        let start = self.start(end.checked_sub(1).filter(|&row| row >= first)?);
        let begin = self.partition(first, end, |other| other < start);
        let limit = if end < last { self.start(end) } else { self.end(last) };
        if address >= limit {
            return None;
        }
        let symbol = |row| Symbol { start, size: 0, limit, name: row as u32, bind: self.bind(row) };
        let name = |symbol: &Symbol| self.name(symbol.name as usize);
        let best = (begin..end).map(symbol).reduce(|best, other| better(best, other, &name))?;
        // Data follows the last function, with symbols of its own.
        self.is_code(best.name as usize).then(|| (name(&best), start))
    }

    fn range(&self, module: &str) -> Option<(usize, usize)> {
        let at = self.modules.iter().position(|(name, _)| name == module)?;
        let start = at.checked_sub(1).map_or(0, |before| self.modules[before].1);
        Some((start, self.modules[at].1))
    }

    /// Returns the first of the rows from `low` to `high` whose address is not `before`.
    fn partition(&self, mut low: usize, mut high: usize, before: impl Fn(u64) -> bool) -> usize {
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.start(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the end address of the module whose rows end before number `end`.
    fn end(&self, end: usize) -> u64 {
        let last = end.checked_sub(1).map_or(0, |row| self.start(row));
        last.checked_next_multiple_of(PAGE).map_or(u64::MAX, |end| end.saturating_add(PAGE))
    }

    fn row(&self, row: usize) -> [u8; ROW] {
        let bytes = row.checked_mul(ROW).and_then(|at| self.rows.get(at..)?.first_chunk());
        bytes.copied().unwrap_or_default()
    }

    fn start(&self, row: usize) -> u64 {
        start(&self.row(row))
    }

    fn bind(&self, row: usize) -> Bind {
        match self.row(row)[12] {
            0 => Bind::Weak,
            1 => Bind::Local,
            _ => Bind::Global,
        }
    }

    fn is_code(&self, row: usize) -> bool {
        self.row(row)[13] != 0
    }

    fn name(&self, row: usize) -> String {
        let [.., a, b, c, d, _, _, _, _] = self.row(row);
        let rest = self.names.get(u32::from_le_bytes([a, b, c, d]) as usize..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk() else { return String::new() };
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        String::from_utf8_lossy(&rest[..length]).into_owned()
    }
}

/// Returns the address of a row.
fn start(row: &[u8; ROW]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *row;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Symbols in the order of the text.
#[derive(Default)]
struct Found {
    numbers: HashMap<Vec<u8>, usize>,
    modules: Vec<Vec<[u8; ROW]>>,
    /// The module of the previous line.
    last: (Vec<u8>, usize),
    names: Vec<u8>,
    is_shown: bool,
}

impl Found {
    fn add(&mut self, line: &Line<'_>) {
        let bind: u8 = match line.kind {
            b'w' | b'W' | b'v' | b'V' => 0,
            kind if kind.is_ascii_uppercase() => 2,
            _ => 1,
        };
        let is_code = b"tTwW".contains(&line.kind);
        self.is_shown |= line.start != 0;
        let Ok(at) = u32::try_from(self.names.len()) else { return };
        // The kernel's own limit is 512.
        let name = &line.name[..line.name.len().min(u16::MAX.into())];
        self.names.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.names.extend_from_slice(name);
        let mut row = [0; ROW];
        row[..8].copy_from_slice(&line.start.to_le_bytes());
        row[8..12].copy_from_slice(&at.to_le_bytes());
        row[12..14].copy_from_slice(&[bind, is_code.into()]);
        if self.modules.is_empty() || self.last.0 != line.module {
            let next = self.numbers.len();
            let number = *self.numbers.entry(line.module.to_vec()).or_insert(next);
            if number == self.modules.len() {
                self.modules.push(Vec::new());
            }
            self.last = (line.module.to_vec(), number);
        }
        self.modules[self.last.1].push(row);
    }

    fn sorted(mut self) -> Kallsyms {
        let mut names: Vec<(Vec<u8>, usize)> = self.numbers.into_iter().collect();
        names.sort_unstable_by_key(|&(_, number)| number);
        let mut rows = Vec::with_capacity(self.modules.iter().map(|rows| rows.len() * ROW).sum());
        let mut modules = Vec::new();
        for ((name, _), mut symbols) in names.into_iter().zip(self.modules) {
            // Equal addresses stay in the order of the text, which is nearly sorted by address.
            symbols.sort_by_key(start);
            rows.extend_from_slice(symbols.as_flattened());
            modules.push((String::from_utf8_lossy(&name).into_owned(), rows.len() / ROW));
        }
        self.names.shrink_to_fit();
        Kallsyms { modules, rows, names: self.names }
    }
}

/// Parses a line of the text: `ffffffff81000000 T _stext`, optionally a tab and the module. Returns `None` for absolute and
/// undefined symbols.
fn line(text: &[u8]) -> Option<Line<'_>> {
    let blank = text.iter().position(|&byte| byte == b' ')?;
    let mut start = 0_u64;
    for &digit in &text[..blank] {
        start = start.checked_mul(16)? | u64::from(char::from(digit).to_digit(16)?);
    }
    let &[b' ', kind, b' ', ref rest @ ..] = &text[blank..] else { return None };
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let (name, module) = rest.split_at(end);
    (!name.is_empty() && !b"aAU".contains(&kind)).then_some(Line {
        start,
        kind,
        name,
        module: module.trim_ascii(),
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
#[path = "kallsyms_tests.rs"]
mod tests;
