//! What can be wrong with call-frame information.

use core::fmt;

/// Which section something is in.
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
    /// The section's name.
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
    /// The section.
    pub section: SectionKind,
    /// Byte offset in the section.
    pub offset: usize,
    /// What is wrong there.
    pub kind: CfiErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfiErrorKind {
    /// The section ends within a value.
    Truncated,
    /// A number is too large for its meaning.
    TooLarge,
    /// An FDE's pointer to its CIE leads elsewhere.
    BadCiePointer,
    /// A CIE of this version is not known.
    UnknownVersion(u8),
    /// A CIE's augmentation string has a letter without known meaning.
    UnknownAugmentation(u8),
    /// A pointer encoding (`DW_EH_PE_*`) that is not known or makes no sense here.
    UnknownPointerEncoding(u8),
    /// A personality routine (of `.ARM.extab`) that is not known.
    UnknownPersonality(u8),
    /// A call-frame instruction that is not known.
    UnknownInstruction(u8),
    /// A call-frame instruction where it is not allowed.
    MisplacedInstruction(u8),
    /// `DW_CFA_restore_state` without `DW_CFA_remember_state`, or too many of the latter.
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
