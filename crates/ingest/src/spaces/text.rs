//! Machine code of files, in blocks that were read lately: what code looks like is asked at many frames, and always of the same few places.
//!
//! Not here: which file is mapped where.

use plumb_process::FileId;

/// Bytes of a block; the code around a place that is scanned takes some 8 of them. A file that is closed is opened for each block.
const BLOCK: u64 = 4096;
/// So many blocks are kept, each in the place of the last bits of its number.
const BLOCKS: usize = 128;

/// Blocks of files' code.
#[derive(Debug, Default)]
pub(crate) struct TextBlocks {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// The file, and how many blocks are before this one.
    of: Option<(FileId, u64)>,
    /// Fewer than [`BLOCK`] where the file ends.
    bytes: Box<[u8]>,
}

impl TextBlocks {
    /// Copies the code of a file from `offset` on; false unless all of `to` is there. `fetch` reads as much of the file as it can.
    pub(crate) fn read(
        &mut self,
        file: FileId,
        offset: u64,
        to: &mut [u8],
        fetch: impl Fn(u64, &mut [u8]) -> usize,
    ) -> bool {
        let (mut at, mut rest) = (offset, to);
        while !rest.is_empty() {
            let block = self.block(file, at / BLOCK, &fetch);
            let Some(known) = block.get((at % BLOCK) as usize..).filter(|known| !known.is_empty()) else {
                return false;
            };
            let length = known.len().min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&known[..length]);
            let Some(next) = at.checked_add(length as u64) else { return false };
            (at, rest) = (next, later);
        }
        true
    }

    fn block(&mut self, file: FileId, number: u64, fetch: &impl Fn(u64, &mut [u8]) -> usize) -> &[u8] {
        if self.blocks.is_empty() {
            self.blocks.resize(BLOCKS, Block::default());
        }
        // Files' code begins at similar offsets.
        let place = number.wrapping_add(37 * file.index() as u64) as usize % BLOCKS;
        let block = &mut self.blocks[place];
        if block.of != Some((file, number)) {
            let mut bytes = vec![0; BLOCK as usize];
            let count = fetch(number * BLOCK, &mut bytes).min(bytes.len());
            bytes.truncate(count);
            *block = Block { of: Some((file, number)), bytes: bytes.into() };
        }
        &block.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use plumb_process::{FileKey, FileOrigin, Files, RecordedFiles};

    use super::*;

    #[test]
    fn code_comes_in_blocks_and_ends_with_its_file() {
        let mut files = Files::default();
        let [one, other] = ["/one", "/other"].map(|path| {
            files.add(FileKey::of_path(path.as_bytes()), &FileOrigin::Recorded(RecordedFiles::default()))
        });
        let text: Vec<u8> = (0..12000_u32).map(|index| ((index * 7) >> 2) as u8).collect();
        let fetched = Cell::new(0);
        let fetch = |offset: u64, to: &mut [u8]| {
            fetched.set(fetched.get() + 1);
            let rest = text.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(to.len());
            to[..count].copy_from_slice(&rest[..count]);
            count
        };
        let mut blocks = TextBlocks::default();
        let mut bytes = [0; 100];
        for at in [0, 4000, 4095, 8000, 11900] {
            assert!(blocks.read(one, at as u64, &mut bytes, fetch), "{at}");
            assert_eq!(bytes, text[at..at + 100], "{at}");
        }
        assert_eq!(fetched.get(), 3, "each block once");
        assert!(!blocks.read(one, 11901, &mut bytes, fetch), "the file ends before");
        assert!(!blocks.read(one, u64::MAX - 5, &mut bytes, |_, _| 4096), "no file is that large");
        assert!(!blocks.read(other, 0, &mut bytes, |_, _| 0), "a block is of one file");
    }
}
