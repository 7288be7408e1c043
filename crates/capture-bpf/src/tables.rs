//! A file's table as the programs in the kernel read it.
//!
//! The rules, pages and rows are those of `plumb_unwind::table`, of all addresses. Some kinds of rows that such a table calls odd
//! get kinds of their own, because nearly every program has them: stubs of procedure linkage tables, the code that
//! returns from a signal handler, and what switches stacks in Go programs. All are told by what their expressions say, not by where
//! they are.

use plumb_capture_perf::{Lent, Root};
use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::Table;
use plumb_unwind::{CfaRule, Module, RegisterRule, Row, go, x86_64};

use crate::wire::{File, KIND_PLT, KIND_SIGNAL, KIND_SWITCH, SEGMENTS, Segment};

/// The header of a table's bytes (`plumb_unwind::table`).
const HEADER: usize = 64;
/// No rule has a number above this.
const MAX_RULES: usize = 0xffff;

/// A table and what is to be known of it; places are from the beginning of `bytes`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loadable {
    pub bytes: Vec<u8>,
    pub file: File,
}

impl Loadable {
    /// The same in pieces of at most so many bytes, in the order of their addresses; of each page all rows are in one, so that none is
    /// smaller than that takes.
    pub fn pieces(self, most: usize) -> Vec<Self> {
        if self.bytes.len() <= most {
            return vec![self];
        }
        let (rules, rest) = self.bytes.split_at(self.file.pages_at as usize);
        let (pages, rows) = rest.split_at(4 * self.file.pages as usize);
        let begins: Vec<u32> = pages.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        // Where a page's rows begin; also that of the one after the last.
        let row = |page: usize| begins.get(page).map_or(self.file.rows, |&row| row) as usize;
        let size = |first: usize, end: usize| rules.len() + 4 * (end - first + 1 + row(end) - row(first));
        let mut pieces = Vec::new();
        let mut first = 0;
        while first < begins.len() {
            let fits = (first + 2..=begins.len()).take_while(|&end| size(first, end) <= most).last();
            let end = fits.unwrap_or(first + 1);
            // What holds at a page's begin is said by the row before.
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

/// Where a file's code is. `None`: in more places than can be told.
pub(crate) fn segments(lent: &Lent<'_>) -> Option<[Segment; SEGMENTS as usize]> {
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
pub(crate) fn loadable(lent: &Lent<'_>) -> Option<Loadable> {
    let segments = segments(lent)?;
    let table = lent.all_rows()?;
    let python = match lent.interpreter {
        Some(Root::Python311 { runtime }) => runtime,
        None => 0,
    };
    let file = File { segments, python, ..File::default() };
    Some(with_known_kinds(&table, lent.module, file))
}

/// The bytes of a table without their header, with rules for what is odd and known.
fn with_known_kinds<B: AsRef<[u8]>>(table: &Table, module: &Module<B>, mut file: File) -> Loadable {
    let all = table.to_bytes();
    let u64_at =
        |at: usize| all.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let body = all.get(HEADER..).unwrap_or_default();
    let (rules, rest) = body.split_at(8 * table.rules().len());
    let mut rules = rules.to_vec();
    let (pages, rows) = rest.split_at(rest.len().saturating_sub(4 * table.rows()));
    let mut rows = rows.to_vec();
    let odd = Rule::only(Kind::Odd);
    let known =
        table.iter().enumerate().filter(|&(_, (_, rule))| rule == odd).filter_map(|(index, (at, _))| {
            let row = module.row(at).ok()??;
            Some((index, known_kind(&row, module)?))
        });
    for (index, rule) in known.collect::<Vec<_>>() {
        let number = match rules.as_chunks::<8>().0.iter().position(|other| *other == rule) {
            Some(number) => number,
            None if rules.len() / 8 >= MAX_RULES => continue,
            None => {
                rules.extend(rule);
                rules.len() / 8 - 1
            }
        };
        if let Some(row) = rows.get_mut(4 * index..4 * index + 2) {
            row.copy_from_slice(&(number as u16).to_le_bytes());
        }
    }
    (file.base, file.end) = (u64_at(16), u64_at(24));
    file.pages_at = rules.len() as u32;
    file.rows_at = file.pages_at + pages.len() as u32;
    file.pages = pages.len() as u32 / 4;
    file.rows = rows.len() as u32 / 4;
    Loadable { bytes: [&rules[..], pages, &rows[..]].concat(), file }
}

/// The rule of an odd row whose kind the programs know.
fn known_kind<B: AsRef<[u8]>>(row: &Row, module: &Module<B>) -> Option<[u8; 8]> {
    if let RegisterRule::ValExpression(caller) = row.register(x86_64::RIP) {
        let caller = module.expression(row, caller);
        return match (row.cfa, row.register(x86_64::RBP)) {
            (CfaRule::Register { register: x86_64::RBP, offset: 16 }, RegisterRule::Offset(-16))
                if caller == go::CALLER_IF_ANY =>
            {
                Some(bytes(KIND_SWITCH, -2, 0))
            }
            (CfaRule::Register { register: x86_64::RSP, offset: 8 }, RegisterRule::SameValue)
                if caller == go::CALLER_AT_ENTRY =>
            {
                Some(bytes(KIND_SWITCH, 0, 1))
            }
            _ => None,
        };
    }
    let CfaRule::Expression(cfa) = row.cfa else { return None };
    let cfa = module.expression(row, cfa);
    let saved = |register, expected: &[u8]| match row.register(register) {
        RegisterRule::Expression(expression) => module.expression(row, expression) == expected,
        _ => false,
    };
    // glibc's __restore_rt (sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c): all registers are relative to rsp.
    const SIGNAL_CFA: &[u8] = &[0x77, 0xa0, 0x01, 0x06];
    if row.is_signal
        && cfa == SIGNAL_CFA
        && saved(x86_64::RIP, &[0x77, 0xa8, 0x01])
        && saved(x86_64::RBP, &[0x77, 0xf8, 0x00])
    {
        return Some(bytes(KIND_SIGNAL, 0, 0));
    }
    // What linkers write for .plt: rsp + 8 + ((rip & 15) >= 11 ? 8 : 0); 10 where stubs begin with endbr64.
    let [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, literal @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] = *cfa else {
        return None;
    };
    let is_plain = row.register(x86_64::RIP) == RegisterRule::Offset(-8)
        && matches!(row.register(x86_64::RBP), RegisterRule::Unspecified | RegisterRule::SameValue)
        && !row.is_signal;
    is_plain.then(|| bytes(KIND_PLT, 0, u32::from(literal - 0x30)))
}

/// As `plumb_unwind::rule::Rule` is laid out; `fp` in words from the CFA.
fn bytes(kind: u32, fp: i16, value: u32) -> [u8; 8] {
    (u64::from(kind) | 0xff << 8 | u64::from(fp as u16) << 16 | u64::from(value) << 32).to_le_bytes()
}

#[cfg(test)]
#[path = "walker_tests.rs"]
mod tests;
