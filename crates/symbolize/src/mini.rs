//! MiniDebugInfo: an xz-compressed ELF file with the symbols of local functions, inside the section `.gnu_debugdata` of an ELF
//! file. Fedora and related distributions put it into every binary.

use std::io::Read;
use std::rc::Rc;

use object::elf::SHT_SYMTAB;

use crate::elf::Image;
use crate::job::Answer;
use crate::summary::Missing;

/// Largest inner file. The largest in practice have a few megabytes.
const MAX_SIZE: u64 = 256 << 20;
/// Memory limit for decompression, in KiB: xz's strongest preset needs 65 MiB.
const MAX_MEMORY_KIB: u32 = 128 << 10;

/// Returns the inner file of `image`, if it has one and neither `image` nor its debug file has all symbols.
pub(crate) fn find(image: &Image, debug: Option<&Image>, answer: &mut Answer) -> Option<Rc<Image>> {
    if [Some(image), debug].into_iter().flatten().any(|image| image.section_of(SHT_SYMTAB).is_some()) {
        return None;
    }
    read(image).unwrap_or_else(|missing| {
        answer.miss(missing);
        None
    })
}

fn read(image: &Image) -> Result<Option<Rc<Image>>, Missing> {
    let Some(section) = image.section(".gnu_debugdata") else { return Ok(None) };
    let compressed = image.read(section)?;
    let mut bytes = Vec::new();
    let reader = lzma_rust2::XzReader::new_mem_limit(&*compressed, false, MAX_MEMORY_KIB);
    let read = reader.take(MAX_SIZE).read_to_end(&mut bytes);
    read.map_err(|error| {
        image.malformed(format!(".gnu_debugdata at offset {:#x}: {error}", section.offset))
    })?;
    Image::from_memory(&image.path, bytes).map(|image| Some(Rc::new(image)))
}
