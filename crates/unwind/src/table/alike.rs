//! Functions whose entries are laid out as that of one before, and have the same CIE: nearly all of a file's.
//!
//! Not here: the heads of others (`heads`).

use core::ops::Range;

use super::heads::{Cie, Head};
use super::machine::Common;
use super::quick;
use crate::cfi::{Encoding, Frames, SectionKind};

/// What such functions have in common.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    /// The offset of their CIE.
    cie: u64,
    pub(super) common: Common,
}

impl Alike {
    /// What others may have in common with the function whose entry is at `offset`, belongs to `cie` and was decoded to
    /// these addresses and instructions; `None` if it is unusual itself.
    pub(super) fn to(
        frames: &Frames<'_>,
        offset: usize,
        cie: &Cie,
        (begin, end, code): (u64, u64, Range<usize>),
    ) -> Option<Alike> {
        let common = cie.common;
        let is_usual = frames.kind == SectionKind::EhFrame
            && common.encoding == Encoding::PC_REL_SDATA4
            && !cie.is_signal
            && quick::is_usual(&common);
        let (_, id) = frames.bytes.get(offset..)?.split_first_chunk::<4>()?;
        let id = u32::from_le_bytes(*id.first_chunk()?);
        let cie = (offset as u64 + 4).checked_sub(id.into())?;
        let alike = Some(Alike { cie, common }).filter(|_| is_usual)?;
        // Entries without a length of augmentation data would be decoded otherwise.
        let head = alike.head(frames, offset as u64)?;
        (head.begin == begin && head.end == end && head.code == code).then_some(alike)
    }

    /// The head of the entry at `offset`, if it is like that.
    #[inline(always)]
    pub(super) fn head(&self, frames: &Frames<'_>, offset: u64) -> Option<Head> {
        let at = usize::try_from(offset).ok()?;
        let bytes = frames.bytes.get(at..)?;
        let head = bytes.first_chunk::<17>()?;
        let ([first, second], augmentation) = (head.as_chunks::<8>().0, head[16]) else { return None };
        let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
        let (length, id) = (first as u32 as usize, first >> 32);
        let (start, end) = (17 + usize::from(augmentation), 4 + length);
        // A length of all ones says that the length has 64 bits; an id of 0 that this is a CIE.
        let is_like = id != 0 && offset + 4 == self.cie + id && augmentation < 0x80;
        let size = (second >> 32) as i32;
        if !is_like || start > end || end > bytes.len() || size < 0 {
            return None;
        }
        let begin = frames.bases.section.wrapping_add(offset + 8).wrapping_add_signed((second as i32).into());
        Some(Head { begin, end: begin.saturating_add(size as u64), code: at + start..at + end })
    }
}
