//! A sorted index of a section without `.eh_frame_hdr`, built when it is first needed.

use alloc::vec::Vec;

use super::cie::Cie;
use super::entry::{Entry, Frames};
use super::error::SectionKind;

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// First address, offset of the FDE; sorted.
    entries: Vec<(u64, usize)>,
}

impl Index {
    /// Reads all entries of the section. What is damaged is left out: its functions have no rules then.
    pub(crate) fn build(frames: &Frames<'_>) -> Index {
        let mut entries = Vec::new();
        let mut last_cie: Option<(usize, Option<Cie>)> = None;
        let mut offset = 0;
        while offset < frames.bytes.len() {
            let entry = match frames.entry(offset) {
                Ok(Some(entry)) => entry,
                // The mark of an end; more may follow where a linker put sections together.
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

    /// The number of functions that begin at or before `pc`; the last of those may hold it.
    pub(crate) fn search(&self, pc: u64) -> usize {
        self.entries.partition_point(|&(begin, _)| begin <= pc)
    }

    /// The number of functions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the function at `index` begins and the offset of its FDE.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, usize)> {
        self.entries.get(index).copied()
    }

    /// The offset of the FDE of the function at `index`.
    pub(crate) fn fde(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|&(_, offset)| offset)
    }
}

/// Where the entry's function begins, if it is an FDE that describes any code.
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
    // Linkers leave address 0 (or 1) in `.debug_frame` for functions that they dropped.
    let dropped = frames.kind == SectionKind::DebugFrame && fde.range.start <= 1;
    (!fde.range.is_empty() && !dropped).then_some(fde.range.start)
}
