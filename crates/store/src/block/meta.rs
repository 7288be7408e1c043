//! `block.json`: metadata of a block. Written last, so that a block without it does not count as one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::schema::BlockTable;
use crate::batch::Millis;

/// Version of the layout; a newer one is rejected on reading.
pub(crate) const VERSION: u32 = 1;
/// Version of a block whose metadata cannot be read.
const UNREAD: u32 = 0;

/// Metadata of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMeta {
    /// Version of the layout.
    pub version: u32,
    /// Name, which is also that of its directory.
    pub id: String,
    /// Compaction level: 0 as written from the head, 1 some minutes merged, 2 an hour, 3 a day.
    pub level: u8,
    /// Timestamp of the first sample.
    pub from_ms: Millis,
    /// Timestamp of the last sample.
    pub until_ms: Millis,
    /// Time of writing.
    pub created_ms: Millis,
    /// Log segments contained in the block, by server: first and last number of each run.
    #[serde(default)]
    pub segments: BTreeMap<String, Vec<(u64, u64)>>,
    /// The blocks that were merged into it, which must no longer be read.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// Size of its contents.
    pub counts: BlockCounts,
    /// Metadata of its files, by name.
    pub files: BTreeMap<String, FileMeta>,
}

/// Size of a block's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounts {
    /// Number of series.
    pub series: u64,
    /// Number of profiles: distinct timestamps of series.
    pub profiles: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of distinct stacks.
    pub stacks: u64,
    /// Number of distinct frames.
    pub frames: u64,
    /// Number of frames of all stacks together. 0 in blocks of older versions.
    #[serde(default)]
    pub stack_frames: u64,
}

/// Metadata of a file of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Length in bytes.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub crc32c: u32,
}

impl BlockMeta {
    /// A block whose metadata cannot be read: all that is known is in its name. `None` if that is not a block's name.
    pub(crate) fn unread(id: &str) -> Option<Self> {
        let (times, _) = id.rsplit_once('-')?.0.rsplit_once('-')?;
        // A time before 1970 begins with a minus.
        let middle = times.get(1..)?.find('-')? + 1;
        let time = |text: &str| text.parse().ok().map(Millis);
        let (from_ms, until_ms) = (time(&times[..middle])?, time(&times[middle + 1..])?);
        Some(Self { from_ms, until_ms, ..Self::empty(UNREAD, id) })
    }

    /// Whether its metadata could be read.
    pub(crate) fn is_read(&self) -> bool {
        self.version != UNREAD
    }

    fn empty(version: u32, id: &str) -> Self {
        Self {
            version,
            id: id.to_owned(),
            level: 0,
            from_ms: Millis(0),
            until_ms: Millis(0),
            created_ms: Millis(0),
            segments: BTreeMap::new(),
            replaces: Vec::new(),
            counts: BlockCounts::default(),
            files: BTreeMap::new(),
        }
    }

    /// An empty block of this name.
    #[cfg(test)]
    pub(crate) fn named(id: &str) -> Self {
        Self::empty(VERSION, id)
    }

    /// Total size of all tables in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    pub(crate) fn file(&self, table: BlockTable) -> Option<FileMeta> {
        self.files.get(table.file()).copied()
    }

    /// Whether the block contains a segment of a server's log.
    pub(crate) fn has_segment(&self, server: &str, segment: u64) -> bool {
        let runs = self.segments.get(server);
        runs.is_some_and(|runs| runs.iter().any(|&(first, last)| (first..=last).contains(&segment)))
    }
}

/// Segments of several blocks, with adjacent runs merged.
pub(crate) fn merged_segments<'m>(
    blocks: impl Iterator<Item = &'m BlockMeta>,
) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut all: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for (server, runs) in blocks.flat_map(|block| &block.segments) {
        all.entry(server.clone()).or_default().extend(runs);
    }
    for runs in all.values_mut() {
        runs.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for &(first, last) in &*runs {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        *runs = merged;
    }
    all
}
