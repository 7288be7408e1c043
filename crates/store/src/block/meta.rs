//! `block.json`: what a block is. Written last, so that a block is there with it or not at all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::schema::BlockTable;
use crate::batch::Millis;

/// Version of the layout; a reader refuses a newer one.
pub(crate) const VERSION: u32 = 1;

/// What a block is and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMeta {
    /// Version of the layout.
    pub version: u32,
    /// Its name, which is that of its folder.
    pub id: String,
    /// How it was compacted: 0 as the head wrote it, 1 some minutes together, 2 an hour, 3 a day.
    pub level: u8,
    /// The time of its first sample.
    pub from_ms: Millis,
    /// The time of its last one.
    pub until_ms: Millis,
    /// When it was written.
    pub created_ms: Millis,
    /// By server, which segments of its write-ahead log are in it: first and last of each run.
    #[serde(default)]
    pub segments: BTreeMap<String, Vec<(u64, u64)>>,
    /// The blocks that it was made of, which are no longer to be read.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// How much it holds.
    pub counts: BlockCounts,
    /// Its files.
    pub files: BTreeMap<String, FileMeta>,
}

/// How much a block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounts {
    /// Series.
    pub series: u64,
    /// Profiles: distinct times of series.
    pub profiles: u64,
    /// Samples.
    pub samples: u64,
    /// Distinct stacks.
    pub stacks: u64,
    /// Distinct frames.
    pub frames: u64,
}

/// A file of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of all of it.
    pub crc32c: u32,
}

impl BlockMeta {
    /// A block without anything.
    #[cfg(test)]
    pub(crate) fn empty(id: &str) -> Self {
        Self {
            version: VERSION,
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

    /// Bytes of all its tables.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    pub(crate) fn file(&self, table: BlockTable) -> Option<FileMeta> {
        self.files.get(table.file()).copied()
    }

    /// Whether a segment of a server's log is in it.
    pub(crate) fn has_segment(&self, server: &str, segment: u64) -> bool {
        let runs = self.segments.get(server);
        runs.is_some_and(|runs| runs.iter().any(|&(first, last)| (first..=last).contains(&segment)))
    }
}

/// All segments of several blocks, neighbours as one run.
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
