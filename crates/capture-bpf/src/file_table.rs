//! A file's table in the format of the BPF programs.
//!
//! The rules, pages and rows are those of `plumb_unwind::table`, for all addresses. Some kinds of rows that such a table marks as odd
//! get kinds of their own, because nearly every program has them: stubs of procedure linkage tables, the code that
//! returns from a signal handler, functions that align their stack, and stack switches in Go programs. All are recognised by their expressions, not by
//! their location.

mod x86_64;

use plumb_capture_api::UnwindInfoRef;
use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::Table;
use plumb_unwind::{Isa, Module, Row, Svma, aarch64};
use rustc_hash::FxHashMap;

use crate::wire::{File, KIND_SIGNAL, SEGMENTS, Segment};

/// A page of a table covers 64 KiB of addresses (`plumb_unwind::table`).
const PAGE_BITS: u32 = 16;
/// Largest rule number.
const MAX_RULES: usize = 0xffff;

/// A table and its description; offsets are from the beginning of `bytes`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loadable {
    pub bytes: Vec<u8>,
    pub file: File,
}

impl Loadable {
    /// Splits the table into pieces of at most `most` bytes, in order of address; all rows of a page are in one piece, so that no piece is
    /// smaller than that requires.
    pub fn pieces(self, most: usize) -> Vec<Self> {
        if self.bytes.len() <= most {
            return vec![self];
        }
        let (rules, rest) = self.bytes.split_at(self.file.pages_at as usize);
        let (pages, rows) = rest.split_at(4 * self.file.pages as usize);
        let begins: Vec<u32> = pages.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        // First row of a page; also of the one after the last.
        let row = |page: usize| begins.get(page).map_or(self.file.rows, |&row| row) as usize;
        let size = |first: usize, end: usize| rules.len() + 4 * (end - first + 1 + row(end) - row(first));
        let mut pieces = Vec::new();
        let mut first = 0;
        while first < begins.len() {
            let fits = (first + 2..=begins.len()).take_while(|&end| size(first, end) <= most).last();
            let end = fits.unwrap_or(first + 1);
            // The rule at a page's start is in the row before.
            let from = row(first).saturating_sub(1);
            let begins = begins.get(first..end).unwrap_or_default();
            let pages: Vec<u8> = begins.iter().flat_map(|&row| (row - from as u32).to_le_bytes()).collect();
            let rows = rows.get(4 * from..4 * row(end)).unwrap_or_default();
            let address = |page: usize| self.file.base + ((page as u64) << 16);
            let file = File {
                base: address(first),
                end: address(end).min(self.file.end),
                rows_at: self.file.pages_at + pages.len() as u32,
                pages: begins.len() as u32,
                rows: rows.len() as u32 / 4,
                ..self.file
            };
            pieces.push(Self { bytes: [rules, &pages, rows].concat(), file });
            first = end;
        }
        pieces
    }
}

/// A file's code segments. `None`: there are too many.
pub(crate) fn segments(lent: &UnwindInfoRef<'_>) -> Option<[Segment; SEGMENTS as usize]> {
    let mut segments = [Segment::default(); SEGMENTS as usize];
    if lent.segments.is_empty() || lent.segments.len() > segments.len() {
        return None;
    }
    for (to, from) in segments.iter_mut().zip(&lent.segments) {
        let begin = from.offset;
        *to = Segment {
            begin,
            end: begin.saturating_add(from.size),
            delta: from.address.wrapping_sub(from.offset),
        };
    }
    Some(segments)
}

/// Makes the table of a file. `None` if it has none that would help.
pub(crate) fn loadable(lent: &UnwindInfoRef<'_>) -> Option<Loadable> {
    let segments = segments(lent)?;
    let table = lent.all_rows()?;
    let script = lent.interpreter.map_or(0, |root| root.address);
    let file = File { segments, script, ..File::default() };
    Some(with_known_kinds(table, lent.module, file))
}

/// The bytes of a table without their header, with rules for odd rows of a known kind.
///
/// A large file's rules take some MiB, so at most two copies exist at a time.
fn with_known_kinds<B: AsRef<[u8]>>(table: Table, module: &Module<B>, mut file: File) -> Loadable {
    let range = table.range();
    (file.base, file.end) = (range.start.0, range.end.0);
    let pages = table.pages();
    let mut numbers = Numbers::default();
    let (mut begins, mut rows) = (Vec::new(), Vec::new());
    let mut last = None;
    for (at, rule) in split_rows(&table, module, file.end) {
        let number = numbers.of(rule);
        let Some(distance) = at.checked_sub(file.base).filter(|_| last != Some(number)) else { continue };
        last = Some(number);
        let page = distance >> PAGE_BITS;
        while begins.len() as u64 <= page {
            begins.push(rows.len() as u32);
        }
        rows.push(u32::from(number) | (distance as u32) << PAGE_BITS);
    }
    drop(table);
    begins.resize(pages.max(begins.len()), rows.len() as u32);
    file.pages_at = 8 * numbers.rules.len() as u32;
    file.rows_at = file.pages_at + 4 * begins.len() as u32;
    (file.pages, file.rows) = (begins.len() as u32, rows.len() as u32);
    let mut bytes = Vec::with_capacity(file.rows_at as usize + 4 * rows.len());
    bytes.extend(numbers.rules.iter().flat_map(|rule| rule.to_le_bytes()));
    bytes.extend(begins.iter().chain(&rows).flat_map(|word| word.to_le_bytes()));
    Loadable { bytes, file }
}

/// The distinct rules of a table.
#[derive(Default)]
struct Numbers {
    rules: Vec<u64>,
    by_rule: FxHashMap<u64, u16>,
}

impl Numbers {
    /// The number of a rule. If there are too many, the last ones become odd.
    fn of(&mut self, rule: u64) -> u16 {
        let odd = u64::from_le_bytes(bytes(Kind::Odd as u32, 0, 0));
        if self.rules.is_empty() {
            self.rules.push(odd);
            self.by_rule.insert(odd, 0);
        }
        let next = self.rules.len();
        *self.by_rule.entry(rule).or_insert_with(|| match u16::try_from(next) {
            Ok(number) if next < MAX_RULES => {
                self.rules.push(rule);
                number
            }
            _ => 0,
        })
    }
}

/// Starts of rows, with their rules. A table has one odd row for successive rows of several kinds.
fn split_rows<B: AsRef<[u8]>>(
    table: &Table,
    module: &Module<B>,
    end: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let ends = table.iter().skip(1).map(|(at, _)| at.0).chain([end]);
    table.iter().zip(ends).flat_map(move |((at, rule), end)| {
        let mut next = Some(at.0);
        let is_odd = rule.kind == Kind::Odd;
        core::iter::from_fn(move || {
            let at = next.take().filter(|&at| at < end || !is_odd)?;
            if !is_odd {
                return Some((at, u64::from_le_bytes(rule_bytes(rule))));
            }
            let row = module.row(Svma(at)).ok().flatten();
            // Rows after one without rules, or a damaged one, stay odd.
            next = row.as_ref().map(|row| row.range.end.0).filter(|&next| next > at);
            let known = row.and_then(|row| known_kind(&row, module));
            Some((at, u64::from_le_bytes(known.unwrap_or(bytes(Kind::Odd as u32, 0, 0)))))
        })
    })
}

/// The rule of an odd row whose kind the programs know.
fn known_kind<B: AsRef<[u8]>>(row: &Row, module: &Module<B>) -> Option<[u8; 8]> {
    match module.isa() {
        Isa::X86_64 => x86_64::known_kind(row, module),
        Isa::Aarch64 => aarch64::is_trampoline_row(row).then(|| bytes(KIND_SIGNAL, 0, 0)),
        _ => None,
    }
}

fn rule_bytes(rule: Rule) -> [u8; 8] {
    with_return_address(rule.kind as u32, rule.ra, rule.fp, rule.value as u32)
}

/// The bytes of a rule whose return address is below the CFA, or that does not say where it is.
fn bytes(kind: u32, fp: i16, value: u32) -> [u8; 8] {
    with_return_address(kind, -1, fp, value)
}

/// In the layout of `plumb_unwind::rule::Rule`; `ra` and `fp` in words from the CFA.
fn with_return_address(kind: u32, ra: i8, fp: i16, value: u32) -> [u8; 8] {
    let low = u64::from(kind) | u64::from(ra as u8) << 8 | u64::from(fp as u16) << 16;
    (low | u64::from(value) << 32).to_le_bytes()
}

#[cfg(test)]
#[path = "walker_tests.rs"]
mod tests;
