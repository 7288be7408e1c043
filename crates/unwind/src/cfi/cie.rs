//! Common information entries: the data that the FDEs of a compilation unit share.

use core::ops::Range;

use super::error::{CfiError, CfiErrorKind, SectionKind};
use super::pointer::{Bases, Encoding};
use super::reader::Reader;

/// Maximum length of an augmentation string. Known ones have at most five letters; the bound keeps hostile files from
/// making each of many FDEs expensive.
const MAX_AUGMENTATION: usize = 32;

/// A decoded CIE.
#[derive(Clone, Debug)]
pub(crate) struct Cie {
    pub(crate) code_alignment: u64,
    pub(crate) data_alignment: i64,
    /// The register column that holds the return address.
    pub(crate) return_register: u64,
    /// Encoding of code addresses in FDEs.
    pub(crate) fde_encoding: Encoding,
    /// Whether FDEs have a length-prefixed augmentation (`z`).
    pub(crate) has_augmentation_data: bool,
    /// Whether the functions are signal trampolines (`S`): their caller was interrupted and did not call.
    pub(crate) is_signal: bool,
    /// Offsets of the initial instructions in the section.
    pub(crate) instructions: Range<usize>,
}

impl Cie {
    /// Decodes the CIE after its id. `reader` must end where the entry ends.
    pub(crate) fn parse(
        mut reader: Reader<'_>,
        section: SectionKind,
        bases: &Bases,
    ) -> Result<Cie, CfiError> {
        let reader = &mut reader;
        let version = reader.u8()?;
        let known = match section {
            SectionKind::DebugFrame => matches!(version, 1 | 3 | 4),
            _ => matches!(version, 1 | 3),
        };
        if !known {
            return Err(reader.error(CfiErrorKind::UnknownVersion(version)));
        }
        let augmentation = reader.position();
        let mut scan = *reader;
        while scan.u8()? != 0 {
            if scan.position() - augmentation > MAX_AUGMENTATION {
                return Err(scan.error(CfiErrorKind::TooLarge));
            }
        }
        let letters = Reader::up_to(*reader, scan.position() - 1);
        reader.skip((scan.position() - augmentation) as u64)?;
        if version == 4 {
            let (address_size, segment_size) = (reader.u8()?, reader.u8()?);
            if address_size != bases.word || segment_size != 0 {
                return Err(reader.error(CfiErrorKind::UnknownVersion(version)));
            }
        }
        let mut first_letters = letters;
        if first_letters.u8() == Ok(b'e') && first_letters.u8() == Ok(b'h') {
            // GCC 2: a pointer to exception data comes first.
            reader.skip(bases.word.into())?;
        }
        let code_alignment = reader.uleb()?;
        let data_alignment = reader.sleb()?;
        let return_register = if version == 1 { u64::from(reader.u8()?) } else { reader.uleb()? };
        let mut cie = Cie {
            code_alignment,
            data_alignment,
            return_register,
            fde_encoding: Encoding::ABSOLUTE,
            has_augmentation_data: false,
            is_signal: false,
            instructions: 0..0,
        };
        cie.augment(letters, reader, bases)?;
        cie.instructions = reader.position()..reader.end();
        Ok(cie)
    }

    /// Interprets the augmentation string and consumes its data.
    fn augment(
        &mut self,
        mut letters: Reader<'_>,
        reader: &mut Reader<'_>,
        bases: &Bases,
    ) -> Result<(), CfiError> {
        let mut data_end = None;
        while !letters.at_end() {
            let letter = letters.u8()?;
            match letter {
                b'z' => {
                    let length = reader.uleb()?;
                    let mut after = *reader;
                    after.skip(length)?;
                    data_end = Some(after.position());
                    self.has_augmentation_data = true;
                }
                // Encoding of pointers to language-specific data, which are in FDEs.
                b'L' => {
                    reader.u8()?;
                }
                b'P' => Encoding(reader.u8()?).skip(reader, bases)?,
                b'R' => self.fde_encoding = Encoding(reader.u8()?),
                b'S' => self.is_signal = true,
                // aarch64: return addresses are signed with key B.
                b'B' => {}
                b'e' if !self.has_augmentation_data => {
                    if letters.u8()? != b'h' {
                        return Err(letters.error(CfiErrorKind::UnknownAugmentation(letter)));
                    }
                }
                _ => return Err(letters.error(CfiErrorKind::UnknownAugmentation(letter))),
            }
        }
        if let Some(end) = data_end {
            let gap = end.checked_sub(reader.position());
            let gap = gap.ok_or_else(|| reader.error(CfiErrorKind::Truncated))?;
            reader.skip(gap as u64)?;
        }
        Ok(())
    }
}
