//! Serialized form of a table, as documented in [`super`]. Loaded data is untrusted until it is checked.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::rows::{MAX_PAGES, MAX_RULES};
use super::{Content, PAGE_BITS, Table};
use crate::isa::Isa;
use crate::rule::{Kind, Rule};

/// Size of the header in bytes.
const HEADER: usize = 64;
const MAGIC: [u8; 8] = *b"PLUMBTBL";
const VERSION: u32 = 1;

/// Architecture numbers in the header.
const ARCHITECTURES: [(u8, Isa); 3] = [(64, Isa::X86_64), (65, Isa::Aarch64), (32, Isa::Arm)];

/// Reason why bytes cannot be loaded as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The magic number is missing.
    NotATable,
    /// The table has another format version.
    OtherVersion(u32),
    /// The table is for an unknown architecture.
    OtherArchitecture(u8),
    /// The size differs from the one in the header.
    Truncated,
    /// The named part is invalid.
    Damaged(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NotATable => f.write_str("not a table of unwind rules"),
            LoadError::OtherVersion(version) => write!(f, "a table of version {version}, not {VERSION}"),
            LoadError::OtherArchitecture(number) => write!(f, "a table for architecture {number}"),
            LoadError::Truncated => f.write_str("a table of another size than it says"),
            LoadError::Damaged(part) => write!(f, "a table with damaged {part}"),
        }
    }
}

impl core::error::Error for LoadError {}

impl Table {
    /// Sets the build id of the file that the table belongs to.
    pub fn with_build_id(mut self, build_id: &[u8]) -> Table {
        self.build_id = short(build_id);
        self
    }

    /// Returns whether the table belongs to the file with this build id.
    pub fn is_of(&self, build_id: &[u8]) -> bool {
        self.build_id == short(build_id)
    }

    /// Returns the size on disk, in bytes.
    pub fn size(&self) -> usize {
        HEADER + 8 * self.rules.len() + 4 * self.pages.len() + 4 * self.rows.len()
    }

    /// Serializes the table.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        let architecture =
            ARCHITECTURES.iter().find(|(_, isa)| *isa == self.isa).map_or(0, |&(number, _)| number);
        bytes.extend([self.content as u8, architecture, 0, 0]);
        bytes.extend(self.base.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        for count in [self.rules.len(), self.pages.len(), self.rows.len()] {
            bytes.extend((count as u32).to_le_bytes());
        }
        bytes.extend(self.build_id);
        bytes.extend(self.rules.iter().flat_map(|&rule| bits(rule).to_le_bytes()));
        bytes.extend(self.pages.iter().flat_map(|page| page.to_le_bytes()));
        bytes.extend(self.rows.iter().flat_map(|row| row.to_le_bytes()));
        bytes
    }

    /// Loads a table from bytes, which need not come from [`Table::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Table, LoadError> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(LoadError::NotATable)?;
        let header = Header::read(header)?;
        let (rules, rest) = split::<8>(rest, header.rules)?;
        let (pages, rest) = split::<4>(rest, header.pages)?;
        let (rows, rest) = split::<4>(rest, header.rows)?;
        if !rest.is_empty() {
            return Err(LoadError::Truncated);
        }
        let rules: Option<Box<[Rule]>> =
            rules.iter().map(|&rule| rule_of(header.isa, u64::from_le_bytes(rule))).collect();
        let table = Table {
            isa: header.isa,
            content: header.content,
            build_id: header.build_id,
            base: header.base,
            end: header.end,
            pages: pages.iter().map(|&page| u32::from_le_bytes(page)).collect(),
            rows: rows.iter().map(|&row| u32::from_le_bytes(row)).collect(),
            rules: rules.ok_or(LoadError::Damaged("rules"))?,
        };
        table.check()?;
        Ok(table)
    }

    /// Checks that pages are in order, that rows are in order within each page, and that their rules exist.
    fn check(&self) -> Result<(), LoadError> {
        let mut after = self.rows.len();
        for &before in self.pages.iter().rev() {
            let before = before as usize;
            let rows = self.rows.get(before..after).ok_or(LoadError::Damaged("pages"))?;
            let ascend = rows.is_sorted_by(|a, b| a >> PAGE_BITS < b >> PAGE_BITS);
            if !ascend {
                return Err(LoadError::Damaged("rows"));
            }
            after = before;
        }
        let there = |row: &u32| ((row & u32::from(u16::MAX)) as usize) < self.rules.len();
        if after != 0 || !self.rows.iter().all(there) {
            return Err(LoadError::Damaged("rows"));
        }
        Ok(())
    }
}

struct Header {
    isa: Isa,
    content: Content,
    base: u64,
    end: u64,
    rules: usize,
    pages: usize,
    rows: usize,
    build_id: [u8; 20],
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Result<Header, LoadError> {
        let u32_at = |at| u32::from_le_bytes(array(bytes, at));
        if array::<8>(bytes, 0) != MAGIC {
            return Err(LoadError::NotATable);
        }
        if u32_at(8) != VERSION {
            return Err(LoadError::OtherVersion(u32_at(8)));
        }
        let [content, architecture, ..] = array::<4>(bytes, 12);
        let known = ARCHITECTURES.iter().find(|(number, _)| *number == architecture);
        let &(_, isa) = known.ok_or(LoadError::OtherArchitecture(architecture))?;
        let content = [Content::All, Content::ByLength, Content::Calls].get(usize::from(content)).copied();
        let header = Header {
            isa,
            content: content.ok_or(LoadError::Damaged("header"))?,
            base: u64::from_le_bytes(array(bytes, 16)),
            end: u64::from_le_bytes(array(bytes, 24)),
            rules: u32_at(32) as usize,
            pages: u32_at(36) as usize,
            rows: u32_at(40) as usize,
            build_id: array(bytes, 44),
        };
        let is_sound =
            header.rules <= MAX_RULES && header.pages <= MAX_PAGES && array::<2>(bytes, 14) == [0; 2];
        is_sound.then_some(header).ok_or(LoadError::Damaged("header"))
    }
}

/// Returns `N` bytes of the header; zeros beyond its end.
fn array<const N: usize>(bytes: &[u8; HEADER], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Truncates or pads a build id to the length that tables store.
fn short(build_id: &[u8]) -> [u8; 20] {
    let mut short = [0; 20];
    short.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    short
}

fn split<const N: usize>(bytes: &[u8], count: usize) -> Result<(&[[u8; N]], &[u8]), LoadError> {
    let size = count.checked_mul(N).ok_or(LoadError::Truncated)?;
    let (part, rest) = bytes.split_at_checked(size).ok_or(LoadError::Truncated)?;
    Ok((part.as_chunks().0, rest))
}

/// Encodes a rule as a number, its first byte the lowest.
#[inline]
pub(super) fn bits(rule: Rule) -> u64 {
    let (ra, fp, value) = (rule.ra as u8, rule.fp as u16, rule.value as u32);
    rule.kind as u64 | u64::from(ra) << 8 | u64::from(fp) << 16 | u64::from(value) << 32
}

/// Decodes a rule, if tables can have it.
pub(super) fn rule_of(isa: Isa, bits: u64) -> Option<Rule> {
    let kinds = [Kind::Sp, Kind::Fp, Kind::Odd, Kind::Root, Kind::MissingHere];
    let kind = kinds.into_iter().find(|&kind| kind as u64 == bits & 0xff)?;
    let rule = Rule { kind, ra: (bits >> 8) as i8, fp: (bits >> 16) as i16, value: (bits >> 32) as i32 };
    let is_sound = match kind {
        Kind::Sp if isa == Isa::X86_64 => rule.ra == -1 && rule.value >= 8,
        Kind::Sp => rule.value >= 0,
        Kind::Fp => rule.ra == -1 || isa != Isa::X86_64,
        _ => rule == Rule::only(kind),
    };
    is_sound.then_some(rule)
}
