//! Compressed sections of debug files, inflated once and kept on disk from run to run.
//!
//! Debian's debug file of libc has 2.4 MB of compressed entries, and every profile has frames of libc: inflating them
//! took longer than all names of a program without debug information.
//!
//! Invariant: what is kept is found by the hash of what it was inflated from, so that it needs no trust in names or ids.

use std::path::Path;

use plumb_process::Kept;
use twox_hash::XxHash3_64;

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::summary::Missing;

/// Version of the form in which sections are kept.
const VERSION: u32 = 1;
/// Most bytes that are kept.
const LIMIT: u64 = 128 << 20;
/// Sections that are smaller, compressed, are inflated in no time.
const SMALL: u64 = 16 << 10;
/// Sections that are larger, inflated, are not kept: they would take the place of all others.
const LARGE: usize = 32 << 20;

/// The contents of a section, from the user's `cache` if it is worth it.
pub(crate) fn read(image: &Image, section: &Section, cache: Option<&Path>) -> Result<Vec<u8>, Missing> {
    let is_worth = section.compression != Compression::None && section.size >= SMALL;
    let Some(cache) = cache.filter(|_| is_worth) else { return image.read(section) };
    let raw = image.read_range(section.offset, section.size)?;
    let kept = Kept::open_in(cache, "sections", VERSION, LIMIT);
    let mut key = XxHash3_64::oneshot(&raw).to_le_bytes().to_vec();
    key.extend(XxHash3_64::oneshot_with_seed(1, &raw).to_le_bytes());
    key.extend(section.size.to_le_bytes());
    if let Some(bytes) = kept.get(&key) {
        return Ok(bytes);
    }
    let bytes = image.decompress(section, &raw)?;
    if bytes.len() <= LARGE {
        kept.put(&key, &bytes);
    }
    Ok(bytes)
}
