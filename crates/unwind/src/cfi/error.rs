//! Errors in call-frame information.

use core::fmt;

/// Name of an unwind section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// `.eh_frame`
    EhFrame,
    /// `.eh_frame_hdr`
    EhFrameHdr,
    /// `.debug_frame`
    DebugFrame,
    /// `.ARM.exidx`
    Exidx,
    /// `.ARM.extab`
    Extab,
}

impl SectionKind {
    /// Returns the name of the section.
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::EhFrame => ".eh_frame",
            SectionKind::EhFrameHdr => ".eh_frame_hdr",
            SectionKind::DebugFrame => ".debug_frame",
            SectionKind::Exidx => ".ARM.exidx",
            SectionKind::Extab => ".ARM.extab",
        }
    }
}

/// Damaged or unsupported call-frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfiError {
    /// The section with the error.
    pub section: SectionKind,
    /// Byte offset in the section.
    pub offset: usize,
    /// Kind of error.
    pub kind: CfiErrorKind,
}

/// Kind of error in call-frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfiErrorKind {
    /// The section ends within a value.
    Truncated,
    /// A number exceeds its range.
    TooLarge,
    /// An FDE's CIE pointer does not point at a CIE.
    BadCiePointer,
    /// The CIE version is unknown.
    UnknownVersion(u8),
    /// The CIE's augmentation string has an unknown letter.
    UnknownAugmentation(u8),
    /// The pointer encoding (`DW_EH_PE_*`) is unknown or not usable here.
    UnknownPointerEncoding(u8),
    /// The personality routine (in `.ARM.extab`) is unknown.
    UnknownPersonality(u8),
    /// The call-frame instruction is unknown.
    UnknownInstruction(u8),
    /// The call-frame instruction is not allowed here.
    MisplacedInstruction(u8),
    /// `DW_CFA_restore_state` without `DW_CFA_remember_state`, or too many nested `DW_CFA_remember_state`.
    UnbalancedState,
}

impl fmt::Display for CfiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {:#x}: ", self.section.name(), self.offset)?;
        match self.kind {
            CfiErrorKind::Truncated => f.write_str("the section ends within a value"),
            CfiErrorKind::TooLarge => f.write_str("a number is too large"),
            CfiErrorKind::BadCiePointer => f.write_str("the pointer to the CIE leads elsewhere"),
            CfiErrorKind::UnknownVersion(version) => write!(f, "unknown CIE version {version}"),
            CfiErrorKind::UnknownAugmentation(letter) => {
                write!(f, "unknown augmentation {:?}", char::from(letter))
            }
            CfiErrorKind::UnknownPointerEncoding(encoding) => {
                write!(f, "unknown pointer encoding {encoding:#04x}")
            }
            CfiErrorKind::UnknownPersonality(number) => {
                write!(f, "unknown personality routine {number:#04x}")
            }
            CfiErrorKind::UnknownInstruction(op) => write!(f, "unknown call-frame instruction {op:#04x}"),
            CfiErrorKind::MisplacedInstruction(op) => write!(f, "misplaced call-frame instruction {op:#04x}"),
            CfiErrorKind::UnbalancedState => f.write_str("unbalanced remember and restore of state"),
        }
    }
}

impl core::error::Error for CfiError {}
