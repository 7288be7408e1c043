//! Headers of functions' entries, and their CIEs, each decoded once.
//!
//! Running the instructions is elsewhere (`machine`, `single`).

use core::ops::Range;

use super::machine::{Common, Function, MAX_ALIGNMENT, Machine};
use super::state::State;
use crate::cfi::{Encoding, Frames, SectionKind};

/// Number of cached CIEs. Most files have one or two; the entries of one object file are adjacent.
const COMMON: usize = 16;

/// File number and offset of a CIE.
type At = (u32, usize);
const NOWHERE: At = (u32::MAX, usize::MAX);

/// Cache of CIEs, for any number of files.
#[derive(Debug)]
pub(crate) struct Heads {
    /// CIE of the current function.
    current: (At, Cie),
    /// Decoded CIEs; `None` for unusable ones.
    commons: [(At, Option<Cie>); COMMON],
}

/// A decoded CIE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie {
    pub(super) common: Common,
    has_augmentation_data: bool,
    pub(super) is_signal: bool,
}

/// Header of a function's entry. Its CIE is the current one.
pub(super) struct Head {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Offsets of the instructions in the section.
    pub(super) code: Range<usize>,
}

impl Cie {
    const NONE: Cie = Cie {
        common: Common {
            code_alignment: 0,
            data_alignment: 0,
            encoding: Encoding::OMIT,
            initial: State::NOTHING,
        },
        has_augmentation_data: false,
        is_signal: false,
    };
}

impl Default for Heads {
    fn default() -> Self {
        Heads { current: (NOWHERE, Cie::NONE), commons: [(NOWHERE, None); COMMON] }
    }
}

impl Heads {
    /// Returns the CIE of the function that was looked up last.
    #[inline(always)]
    pub(super) fn cie(&self) -> &Cie {
        &self.current.1
    }

    /// Decodes the header of the entry at `offset` in the frames of a file with the number `file`.
    #[inline(always)]
    pub(super) fn head(&mut self, frames: &Frames<'_>, file: u32, offset: usize) -> Option<Head> {
        match self.usual(frames, file, offset) {
            Some(head) => Some(head),
            None => self.any(frames, file, offset),
        }
    }

    /// Decodes the header of an entry in the format of nearly all compiler output: 32 bits long, address relative to
    /// itself.
    #[inline(always)]
    fn usual(&mut self, frames: &Frames<'_>, file: u32, offset: usize) -> Option<Head> {
        let bytes = frames.bytes.get(offset..)?;
        let (head, _) = bytes.split_first_chunk::<17>()?;
        let &[l0, l1, l2, l3, i0, i1, i2, i3, b0, b1, b2, b3, r0, r1, r2, r3, augmentation] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let id = u32::from_le_bytes([i0, i1, i2, i3]) as usize;
        // A length of all ones means a 64-bit length; an id of 0 means a CIE.
        let code = 17 + usize::from(augmentation)..4 + length;
        let is_usual = frames.kind == SectionKind::EhFrame && id != 0 && augmentation < 0x80;
        if !is_usual || code.start > code.end || code.end > bytes.len() {
            return None;
        }
        let begin = frames.bases.section.wrapping_add(offset as u64 + 8);
        let begin = begin.wrapping_add_signed(i32::from_le_bytes([b0, b1, b2, b3]).into());
        let cie = (offset + 4).checked_sub(id)?;
        if self.current.0 != (file, cie) {
            self.enter(frames, file, cie)?;
        }
        let cie = &self.current.1;
        let size = i32::from_le_bytes([r0, r1, r2, r3]);
        if cie.common.encoding != Encoding::PC_REL_SDATA4 || !cie.has_augmentation_data || size < 0 {
            return None;
        }
        let end = begin.saturating_add(size as u64);
        Some(Head { begin, end, code: offset + code.start..offset + code.end })
    }

    /// Decodes the header of any entry.
    #[inline(never)]
    fn any(&mut self, frames: &Frames<'_>, file: u32, offset: usize) -> Option<Head> {
        let entry = frames.entry(offset).ok()??;
        self.enter(frames, file, entry.cie?)?;
        let cie = &self.current.1;
        let mut body = entry.body;
        let begin = cie.common.encoding.read(&mut body, &frames.bases).ok()?;
        let length = cie.common.encoding.format_only().read(&mut body, &frames.bases).ok()?;
        if cie.has_augmentation_data {
            let length = body.uleb().ok()?;
            body.skip(length).ok()?;
        }
        Some(Head { begin, end: begin.saturating_add(length), code: body.position()..body.end() })
    }

    /// Makes the CIE at `offset` the current one; `None` if it is unusable.
    #[inline(never)]
    fn enter(&mut self, frames: &Frames<'_>, file: u32, offset: usize) -> Option<()> {
        let slot = ((offset / 8) ^ file as usize) % COMMON;
        let cie = match self.commons.get(slot) {
            Some((at, cie)) if *at == (file, offset) => *cie,
            _ => {
                let cie = decode(frames, offset);
                if let Some(slot) = self.commons.get_mut(slot) {
                    *slot = ((file, offset), cie);
                }
                cie
            }
        };
        self.current = ((file, offset), cie?);
        Some(())
    }
}

fn decode(frames: &Frames<'_>, offset: usize) -> Option<Cie> {
    let cie = frames.cie(offset).ok()?;
    if cie.return_register != u64::from(crate::x86_64::RIP) || cie.code_alignment > MAX_ALIGNMENT {
        return None;
    }
    let mut common = Common {
        code_alignment: cie.code_alignment,
        data_alignment: cie.data_alignment,
        encoding: cie.fde_encoding,
        initial: State::NOTHING,
    };
    let function = Function { frames, range: 0..u64::MAX, code: cie.instructions };
    common.initial = Machine::new().initial(&function, &common)?;
    Some(Cie { common, has_augmentation_data: cie.has_augmentation_data, is_signal: cie.is_signal })
}
