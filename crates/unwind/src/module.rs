//! The unwind sections of one ELF file.
//!
//! A module is made without looking at its sections. Whatever is needed of them is decoded on the first question.

use crate::address::Svma;

/// The bytes of a section and where the file says that they are loaded.
#[derive(Clone, Debug)]
pub struct Section<B> {
    /// Stated address of the first byte.
    pub address: Svma,
    /// The content.
    pub bytes: B,
}

/// The sections of a file that matter for unwinding; all may be absent.
#[derive(Clone, Debug)]
pub struct Sections<B> {
    /// `.eh_frame`
    pub eh_frame: Option<Section<B>>,
    /// `.eh_frame_hdr`, or what `PT_GNU_EH_FRAME` points at.
    pub eh_frame_hdr: Option<Section<B>>,
    /// `.debug_frame`, uncompressed.
    pub debug_frame: Option<Section<B>>,
    /// Where `.text` begins, the base of text-relative pointers.
    pub text: Option<Svma>,
    /// Where `.got` begins, the base of data-relative pointers.
    pub got: Option<Svma>,
}

impl<B> Default for Sections<B> {
    fn default() -> Self {
        Sections { eh_frame: None, eh_frame_hdr: None, debug_frame: None, text: None, got: None }
    }
}

/// The unwind information of one ELF file; what is the same in all processes that map it.
#[derive(Debug)]
pub struct Module<B> {
    sections: Sections<B>,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// Takes the sections without looking into them, so this never fails.
    pub fn new(sections: Sections<B>) -> Self {
        Module { sections }
    }

    /// The sections that the module was made of.
    pub fn sections(&self) -> &Sections<B> {
        &self.sections
    }
}
