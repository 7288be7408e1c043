//! Entries of `.eh_frame` and `.debug_frame`, and the FDE of one function.

use core::ops::Range;

use super::cie::Cie;
use super::error::{CfiError, CfiErrorKind, SectionKind};
use super::pointer::Bases;
use super::reader::Reader;
use crate::isa::Isa;

/// A section of CIEs and FDEs.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) kind: SectionKind,
    pub(crate) isa: Isa,
    pub(crate) bases: Bases,
}

/// A decoded FDE.
#[derive(Clone, Debug)]
pub(crate) struct Fde {
    pub(crate) cie: Cie,
    /// Stated addresses of the function, end exclusive.
    pub(crate) range: Range<u64>,
    /// Offsets of the instructions in the section.
    pub(crate) instructions: Range<usize>,
}

/// A decoded entry header.
pub(crate) struct Entry<'a> {
    /// Contents of the entry, after the id.
    pub(crate) body: Reader<'a>,
    /// Offset of the CIE, if the entry is an FDE.
    pub(crate) cie: Option<usize>,
    /// Offset of the next entry.
    pub(crate) next: usize,
}

impl<'a> Frames<'a> {
    /// Decodes the header of the entry at `offset`; `None` for the terminator (a zero length).
    pub(crate) fn entry(&self, offset: usize) -> Result<Option<Entry<'a>>, CfiError> {
        let mut reader = Reader::new(self.bytes, offset, self.kind);
        let first = reader.u32()?;
        let is_64 = first == u32::MAX;
        let length = if is_64 { reader.u64()? } else { u64::from(first) };
        if length == 0 {
            return Ok(None);
        }
        let id_at = reader.position();
        let mut after = reader;
        after.skip(length)?;
        let next = after.position();
        let mut body = reader.up_to(next);
        let cie = match self.kind {
            SectionKind::DebugFrame => {
                let (id, mark) =
                    if is_64 { (body.u64()?, u64::MAX) } else { (body.u32()?.into(), u32::MAX.into()) };
                let offset = || usize::try_from(id).map_err(|_| body.error(CfiErrorKind::BadCiePointer));
                if id == mark { None } else { Some(offset()?) }
            }
            // The id counts back from its own position and has four bytes, whatever the size of the length.
            _ => match body.u32()? {
                0 => None,
                back => {
                    let offset = id_at.checked_sub(back as usize);
                    Some(offset.ok_or_else(|| body.error(CfiErrorKind::BadCiePointer))?)
                }
            },
        };
        Ok(Some(Entry { body, cie, next }))
    }

    /// Decodes the CIE at `offset`.
    pub(crate) fn cie(&self, offset: usize) -> Result<Cie, CfiError> {
        match self.entry(offset)? {
            Some(Entry { body, cie: None, .. }) => Cie::parse(body, self.kind, &self.bases),
            _ => Err(CfiError { section: self.kind, offset, kind: CfiErrorKind::BadCiePointer }),
        }
    }

    /// Decodes the FDE at `offset`; `None` if the entry is not an FDE.
    pub(crate) fn fde(&self, offset: usize) -> Result<Option<Fde>, CfiError> {
        match self.entry(offset)? {
            Some(Entry { body, cie: Some(cie), .. }) => self.fde_with(body, self.cie(cie)?).map(Some),
            _ => Ok(None),
        }
    }

    /// Decodes the rest of an FDE after its header. `cie` is its CIE.
    pub(crate) fn fde_with(&self, mut body: Reader<'a>, cie: Cie) -> Result<Fde, CfiError> {
        let begin = cie.fde_encoding.read(&mut body, &self.bases)?;
        let length = cie.fde_encoding.format_only().read(&mut body, &self.bases)?;
        if cie.has_augmentation_data {
            let length = body.uleb()?;
            body.skip(length)?;
        }
        let range = begin..begin.saturating_add(length);
        Ok(Fde { cie, range, instructions: body.position()..body.end() })
    }
}
