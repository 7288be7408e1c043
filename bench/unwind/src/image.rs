//! The unwind sections of the ELF files of a corpus, for all engines in Rust.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use object::{Object, ObjectSection, ObjectSegment};

use crate::corpus::Corpus;

/// A section's stated address and bytes.
pub type Section = (u64, Vec<u8>);

/// One file.
#[derive(Default)]
pub struct Image {
    pub eh_frame: Option<Section>,
    pub eh_frame_hdr: Option<Section>,
    pub debug_frame: Option<Section>,
    pub text: Option<(u64, u64)>,
    pub got: Option<(u64, u64)>,
}

/// The stated address of the first byte of an executable mapping of a file. Segments may share a page, so only those
/// with code count.
pub fn stated(path: &Path, offset: u64) -> Option<u64> {
    let data = std::fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let segment = file.segments().find(|segment| {
        let (at, size) = segment.file_range();
        let has_code =
            matches!(segment.flags(), object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        has_code && offset & !0xfff >= at & !0xfff && offset < at + size
    })?;
    Some(segment.address().wrapping_sub(segment.file_range().0).wrapping_add(offset))
}

fn load(path: &str) -> Option<Image> {
    let data = std::fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let take = |name: &str| {
        let section = file.section_by_name(name)?;
        Some((section.address(), section.uncompressed_data().ok()?.into_owned()))
    };
    let range = |name: &str| {
        let section = file.section_by_name(name)?;
        Some((section.address(), section.address() + section.size()))
    };
    Some(Image {
        eh_frame: take(".eh_frame"),
        eh_frame_hdr: take(".eh_frame_hdr"),
        debug_frame: take(".debug_frame"),
        text: range(".text"),
        got: range(".got"),
    })
}

/// The image of each mapping; mappings of one file share one.
pub fn load_all(corpus: &Corpus) -> Vec<Rc<Image>> {
    let mut known: HashMap<&str, Rc<Image>> = HashMap::new();
    let image = |path: &'_ str| Rc::new(load(path).unwrap_or_default());
    let mappings = corpus.mappings.iter();
    mappings
        .map(|mapping| known.entry(&mapping.path).or_insert_with(|| image(&mapping.path)).clone())
        .collect()
}
