//! Tables of the rules for callers: built once from a file's call-frame information, stored, loaded, and looked up
//! often.
//!
//! A frame other than the innermost is only ever looked up at the byte before its return address, which is the last
//! byte of a call. So rows in which no call ends are dropped, and a twentieth to a sixth of all rows remains. Lookups
//! of other addresses give meaningless results. [`Table::by_length`] drops rows that are too short to hold a call,
//! which needs only call-frame information; [`Table::of_calls`] looks for calls in the code.
//!
//! # Layout
//!
//! All numbers are little-endian; addresses are stated addresses. Parts follow each other without gaps, all at multiples
//! of four; rules, which come before pages and rows, at multiples of eight.
//!
//! | part | offset | size | content |
//! |---|---|---|---|
//! | header | 0 | 8 | `PLUMBTBL` |
//! | | 8 | 4 | version: 1 |
//! | | 12 | 1 | which rows: 0 all, 1 by length, 2 of calls |
//! | | 13 | 1 | architecture: 64 is x86_64, 65 aarch64, 32 ARM |
//! | | 14 | 2 | zero |
//! | | 16 | 8 | base: the first address of the first page, a multiple of 65536 |
//! | | 24 | 8 | end: the first address after all functions |
//! | | 32 | 4 | number of rules, at most 65535 |
//! | | 36 | 4 | number of pages, at most 65536 |
//! | | 40 | 4 | number of rows |
//! | | 44 | 20 | the file's build id: its first 20 bytes, zeros after it |
//! | rules | 64 | 8 each | [`Rule`]: kind, `ra`, `fp` (2), value (4) |
//! | pages | | 4 each | for each 64 KiB from the base on: the number of rows before it |
//! | rows | | 4 each | number of the rule (2), first address in its page (2) |
//!
//! The bytes are the same on all machines, whatever the architecture of the file and of the machine. `ra` is -1 on
//! x86_64, where calls push the return address; elsewhere 0 means that it is still in its register, and -128
//! that it is one word above the saved frame pointer, further from the CFA than this can say. For aarch64, a
//! table [by length](Table::by_length) has all rows; for ARM, every table has.
//!
//! A row applies up to the next one, also across pages. Compared as four-byte numbers, the rows of a page ascend.

use alloc::boxed::Box;

mod build;
mod calls;
mod code;
mod functions;
mod heads;
mod keep;
mod layout;
mod machine;
mod open;
mod others;
mod rows;
mod single;
mod state;

use core::fmt;
use core::ops::Range;

pub use calls::Text;
pub(crate) use calls::indirect as indirect_call;
pub(crate) use functions::Functions;
pub(crate) use heads::Heads;
pub use layout::LoadError;
pub(crate) use single::rule_at;

use crate::address::Svma;
use crate::isa::Isa;
use crate::rule::{Kind, Rule};

/// Base-2 logarithm of the page size: a page covers 64 KiB of addresses.
const PAGE_BITS: u32 = 16;

/// Rules by address, for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    isa: Isa,
    content: Content,
    build_id: [u8; 20],
    base: u64,
    end: u64,
    pages: Box<[u32]>,
    rows: Box<[u32]>,
    rules: Box<[Rule]>,
}

/// Set of rows in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// All rows, so that any address can be looked up.
    All,
    /// Rows long enough for a call.
    ByLength,
    /// Rows in which a call ends.
    Calls,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The rule. Its kind is [`Kind::Sp`], [`Kind::Fp`], [`Kind::Root`] or [`Kind::MissingHere`].
    Rule(Rule),
    /// No compact rule fits; use the call-frame information.
    Odd,
    /// The address is outside of the table; the call-frame information may cover it.
    Absent,
}

/// Reason why no table can be built for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// The file has no call-frame information.
    NoFrames,
    /// Tables are not supported for the file's architecture.
    OtherArchitecture,
    /// The functions in `.eh_frame_hdr` are not sorted.
    Unsorted,
    /// The file has more than 65,535 different rules.
    TooManyRules,
    /// The code spans more than 4 GiB.
    TooWide,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableError::NoFrames => "no call-frame information",
            TableError::OtherArchitecture => "not of an architecture that tables are made for",
            TableError::Unsorted => "the functions in .eh_frame_hdr are not in order",
            TableError::TooManyRules => "more than 65,535 different rules",
            TableError::TooWide => "code that spans more than 4 GiB",
        })
    }
}

impl core::error::Error for TableError {}

impl Table {
    /// Looks up the call that ends with the byte at `call`, which is the byte before a return address.
    #[inline]
    pub fn lookup(&self, call: Svma) -> Lookup {
        let Some(rule) = self.rule(call.0) else { return Lookup::Absent };
        if rule.kind == Kind::Odd { Lookup::Odd } else { Lookup::Rule(rule) }
    }

    #[inline]
    fn rule(&self, address: u64) -> Option<Rule> {
        if address >= self.end {
            return None;
        }
        let offset = address.checked_sub(self.base)?;
        let page = usize::try_from(offset >> PAGE_BITS).ok()?;
        let before = *self.pages.get(page)? as usize;
        let after = self.pages.get(page + 1).map_or(self.rows.len(), |&rows| rows as usize);
        let low = (offset as u32) << PAGE_BITS | u32::from(u16::MAX);
        let rows = self.rows.get(before..after)?;
        // The row may begin in an earlier page.
        let row = before + rows.partition_point(|&row| row <= low);
        let row = self.rows.get(row.checked_sub(1)?)?;
        self.rules.get((row & u32::from(u16::MAX)) as usize).copied()
    }

    /// Iterates over the rows: the start of each, and its rule.
    pub fn iter(&self) -> impl Iterator<Item = (Svma, Rule)> {
        let ends = self.pages.iter().skip(1).copied().chain([u32::MAX]);
        let mut pages = (0_u64..).zip(ends).peekable();
        self.rows.iter().zip(0_u32..).filter_map(move |(&row, index)| {
            while pages.next_if(|&(_, end)| end <= index).is_some() {}
            let offset = (pages.peek()?.0 << PAGE_BITS) + u64::from(row >> PAGE_BITS);
            let rule = self.rules.get((row & u32::from(u16::MAX)) as usize)?;
            Some((Svma(self.base.wrapping_add(offset)), *rule))
        })
    }

    /// Returns the instruction set of the file.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Returns which rows the table has.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.pages) + size_of_val(&*self.rows) + size_of_val(&*self.rules)
    }

    /// Returns the addresses from the start of the first page to the end of the last row.
    pub fn range(&self) -> Range<Svma> {
        Svma(self.base)..Svma(self.end)
    }

    /// Returns the number of pages, of 64 KiB of addresses each.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the distinct rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}
