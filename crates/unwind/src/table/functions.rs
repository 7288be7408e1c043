//! The functions of a file in address order, from its index.

use core::ops::Range;

use super::heads::{Head, Heads};
use crate::cfi::{Bases, Frames, Header, Index};

/// Starts of functions and offsets of their entries.
pub(crate) struct Functions<'a> {
    pub(super) frames: Frames<'a>,
    list: List<'a>,
}

enum List<'a> {
    /// `.eh_frame_hdr` in the format that all linkers write: pairs of 32-bit offsets from its address.
    Usual(&'a [[u8; 8]], u64),
    /// `.eh_frame_hdr` with other pointer encodings.
    Header(&'a [u8], Header, Bases),
    Index(&'a Index),
}

impl<'a> Functions<'a> {
    pub(crate) fn of_header(frames: Frames<'a>, bytes: &'a [u8], header: Header, bases: Bases) -> Self {
        let list = match header.usual(bytes) {
            Some(entries) => List::Usual(entries, bases.section),
            None => List::Header(bytes, header, bases),
        };
        Functions { frames, list }
    }

    pub(crate) fn of_index(frames: Frames<'a>, index: &'a Index) -> Self {
        Functions { frames, list: List::Index(index) }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.list {
            List::Usual(entries, _) => entries.len(),
            List::Header(_, header, _) => header.len(),
            List::Index(index) => index.len(),
        }
    }

    /// Returns the start of the function at `index`, and the offset of its entry if that is valid. `None` if there
    /// are fewer functions.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<(u64, Option<usize>)> {
        match self.list {
            List::Usual(entries, base) => {
                let &[a, b, c, d, e, f, g, h] = entries.get(index)?;
                let at = |relative: [u8; 4]| base.wrapping_add_signed(i32::from_le_bytes(relative).into());
                Some((at([a, b, c, d]), self.offset(at([e, f, g, h]))))
            }
            _ => self.unusual(index),
        }
    }

    /// Returns the address range of each function.
    pub(crate) fn ranges<'f>(&'f self, heads: &'f mut Heads) -> impl Iterator<Item = Range<u64>> + 'f {
        (0..self.len()).filter_map(|index| {
            let offset = self.get(index)?.1?;
            match heads.head(&self.frames, 0, offset) {
                Some(Head { begin, end, .. }) => Some(begin..end),
                // Of another architecture than x86_64.
                None => self.frames.fde(offset).ok()?.map(|fde| fde.range),
            }
        })
    }

    #[inline(never)]
    fn unusual(&self, index: usize) -> Option<(u64, Option<usize>)> {
        match &self.list {
            List::Usual(..) => None,
            List::Header(bytes, header, bases) => {
                // A pointer with a known size can always be read, so a read error means that `index` is out of range.
                let start = header.start(bytes, bases, index).ok().filter(|_| index < header.len())?;
                let fde = header.fde(bytes, bases, index).ok();
                Some((start, fde.and_then(|fde| self.offset(fde))))
            }
            List::Index(functions) => functions.get(index).map(|(start, offset)| (start, Some(offset))),
        }
    }

    fn offset(&self, fde: u64) -> Option<usize> {
        usize::try_from(fde.wrapping_sub(self.frames.bases.section)).ok()
    }
}
