//! The executable mappings of an address space, as they change over time.
//!
//! Invariant: ranges are sorted and do not overlap. A new mapping replaces earlier ones in its range, which are shortened,
//! split or removed: the kernel reports mappings, but not unmappings, so earlier ones must
//! have been unmapped. A clone shares its content until one of the two changes, because forks are frequent and
//! seldom change anything before they exec.

use std::ops::Range;
use std::sync::Arc;

use crate::elf::FileOffset;
use crate::files::FileId;

/// The contents of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file.
    File(FileId),
    /// The vdso.
    Vdso,
    /// Anonymous memory: the heap, a stack, the output of a JIT compiler.
    Anonymous,
}

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vma {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Offset in the file where the mapping begins; 0 without a file.
    pub offset: FileOffset,
    /// The contents.
    pub backing: Backing,
}

impl Vma {
    /// Converts a run-time address in this mapping to a file offset.
    pub fn file_offset(&self, address: u64) -> FileOffset {
        FileOffset(self.offset.0.wrapping_add(address.wrapping_sub(self.start)))
    }

    fn part(&self, range: Range<u64>) -> Vma {
        Vma { start: range.start, end: range.end, offset: self.file_offset(range.start), ..*self }
    }
}

/// The executable mappings of an address space.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    mappings: Arc<Vec<Vma>>,
}

impl AddressSpace {
    /// Adds a mapping, replacing earlier ones in its range. Returns `false`, and changes nothing, if it was already known or is
    /// empty.
    pub fn map(&mut self, new: Vma) -> bool {
        if new.start >= new.end {
            return false;
        }
        let first = self.mappings.partition_point(|old| old.end <= new.start);
        let after = self.mappings.partition_point(|old| old.start < new.end);
        if self.mappings[first..after] == [new] {
            return false;
        }
        let mut middle = Vec::with_capacity(3);
        if let Some(old) = self.mappings[first..after].first()
            && old.start < new.start
        {
            middle.push(old.part(old.start..new.start));
        }
        middle.push(new);
        if let Some(old) = self.mappings[first..after].last()
            && new.end < old.end
        {
            middle.push(old.part(new.end..old.end));
        }
        Arc::make_mut(&mut self.mappings).splice(first..after, middle);
        true
    }

    /// Returns the mapping that contains an address.
    pub fn find(&self, address: u64) -> Option<&Vma> {
        let index = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings.get(index).filter(|mapping| mapping.start <= address)
    }

    /// Whether anything is mapped in `range`.
    pub fn overlaps(&self, range: Range<u64>) -> bool {
        let index = self.mappings.partition_point(|mapping| mapping.end <= range.start);
        self.mappings.get(index).is_some_and(|mapping| mapping.start < range.end)
    }

    /// Returns all mappings by address.
    pub fn mappings(&self) -> &[Vma] {
        &self.mappings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(range: Range<u64>, offset: u64, backing: Backing) -> Vma {
        Vma { start: range.start, end: range.end, offset: FileOffset(offset), backing }
    }
    const FILE: Backing = Backing::File(FileId::TEST);

    fn ranges(space: &AddressSpace) -> Vec<(u64, u64, u64)> {
        space.mappings().iter().map(|m| (m.start, m.end, m.offset.0)).collect()
    }

    #[test]
    fn new_mapping_splits_old_one_and_keeps_file_offsets() {
        let mut space = AddressSpace::default();
        assert!(space.map(mapping(0x1000..0x9000, 0x100, FILE)));
        assert!(space.map(mapping(0x3000..0x4000, 0, Backing::Anonymous)));
        assert_eq!(ranges(&space), [(0x1000, 0x3000, 0x100), (0x3000, 0x4000, 0), (0x4000, 0x9000, 0x3100)]);
        assert_eq!(space.find(0x3fff).unwrap().backing, Backing::Anonymous);
        assert_eq!(space.find(0x4000).unwrap().file_offset(0x4010), FileOffset(0x3110));
    }

    #[test]
    fn new_mapping_buries_and_trims() {
        let mut space = AddressSpace::default();
        for start in [0x1000, 0x3000, 0x5000, 0x7000] {
            space.map(mapping(start..start + 0x1000, start, FILE));
        }
        assert!(space.map(mapping(0x1800..0x7800, 0, Backing::Anonymous)));
        assert_eq!(ranges(&space), [(0x1000, 0x1800, 0x1000), (0x1800, 0x7800, 0), (0x7800, 0x8000, 0x7800)]);
    }

    #[test]
    fn touching_mappings_do_not_disturb_each_other() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x2000..0x3000, 0, FILE));
        space.map(mapping(0x1000..0x2000, 0, Backing::Anonymous));
        space.map(mapping(0x3000..0x4000, 0, Backing::Anonymous));
        assert_eq!(ranges(&space).len(), 3);
        assert!(space.find(0xfff).is_none() && space.find(0x4000).is_none());
        assert!(!space.map(mapping(0x2000..0x3000, 0, FILE)), "known already");
        assert!(!space.map(mapping(0x5000..0x5000, 0, FILE)), "empty");
    }

    #[test]
    fn clone_is_independent() {
        let mut parent = AddressSpace::default();
        parent.map(mapping(0x1000..0x2000, 0, FILE));
        let mut child = parent.clone();
        child.map(mapping(0x1000..0x2000, 0, Backing::Anonymous));
        assert_eq!(parent.find(0x1000).unwrap().backing, FILE);
        assert_eq!(child.find(0x1000).unwrap().backing, Backing::Anonymous);
    }
}
