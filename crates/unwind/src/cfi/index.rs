//! Sorted index of a section without `.eh_frame_hdr`, built on first use.

use alloc::vec::Vec;

use super::cie::Cie;
use super::entry::{Entry, Frames};
use super::error::SectionKind;

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Start of the function and offset of the FDE, sorted.
    entries: Vec<(u64, usize)>,
}

impl Index {
    /// Reads all entries of the section. Skips damaged ones, so their functions have no rules.
    pub(crate) fn build(frames: &Frames<'_>) -> Index {
        let mut entries = Vec::new();
        let mut last_cie: Option<(usize, Option<Cie>)> = None;
        let mut offset = 0;
        while offset < frames.bytes.len() {
            let entry = match frames.entry(offset) {
                Ok(Some(entry)) => entry,
                // Terminator. More entries may follow where a linker concatenated sections.
                Ok(None) => {
                    offset += 4;
                    continue;
                }
                Err(_) => break,
            };
            let next = entry.next;
            if let Some(begin) = function(frames, entry, &mut last_cie) {
                entries.push((begin, offset));
            }
            offset = next;
        }
        entries.sort_unstable();
        Index { entries }
    }

    /// Returns the number of functions that begin at or before `pc`. The last of those may hold it.
    pub(crate) fn search(&self, pc: u64) -> usize {
        self.entries.partition_point(|&(begin, _)| begin <= pc)
    }

    /// Returns the number of functions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the start of the function at `index` and the offset of its FDE.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, usize)> {
        self.entries.get(index).copied()
    }

    /// Returns the offset of the FDE of the function at `index`.
    pub(crate) fn fde(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|&(_, offset)| offset)
    }
}

/// Returns the start of the entry's function, if the entry is an FDE that covers code.
fn function(
    frames: &Frames<'_>,
    entry: Entry<'_>,
    last_cie: &mut Option<(usize, Option<Cie>)>,
) -> Option<u64> {
    let cie_at = entry.cie?;
    if last_cie.as_ref().is_none_or(|(at, _)| *at != cie_at) {
        *last_cie = Some((cie_at, frames.cie(cie_at).ok()));
    }
    let cie = last_cie.as_ref()?.1.clone()?;
    let fde = frames.fde_with(entry.body, cie).ok()?;
    // Linkers leave address 0 (or 1) in `.debug_frame` for discarded functions.
    let dropped = frames.kind == SectionKind::DebugFrame && fde.range.start <= 1;
    (!fde.range.is_empty() && !dropped).then_some(fde.range.start)
}
