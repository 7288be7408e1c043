//! Reads blocks: first the series and profiles, then the requested rows of samples.
//!
//! The results are kept in a cache of bounded size. Each file is verified against its checksum when it is read.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use parquet::errors::ParquetError;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::index::{BlockIndex, ProfileRow};
use super::meta::BlockMeta;
use super::row_ranges::RowRanges;
use super::schema::BlockTable;
use super::source::BlockSource;
use super::stack_rows::StackRows;
use super::table_reader::TableReader;
use crate::batch::{SeriesKey, StoredSample};
use crate::bucket::Bucket;
use crate::cancellation::Cancellation;
use crate::dictionary::{Dictionary, FrameKey, StackNodeId, StoredFrame, TextId};
use crate::error::StoreError;
use crate::labels::Labels;
use crate::resolved::FrameNames;

/// Cache of parts of blocks between queries.
pub(crate) type BlockCache = Cache<(Arc<str>, Part), Cached, ByBytes>;

/// A part of a block that can be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    File(BlockTable),
    Index,
    /// Call of each stack in the shared calls of this generation.
    Calls(u64),
}

#[derive(Clone)]
pub(crate) enum Cached {
    File(Bytes),
    Index(Arc<BlockIndex>),
    Calls(Arc<Vec<u32>>),
}

/// Weighs cached parts by their size in bytes.
#[derive(Clone, Copy)]
pub(crate) struct ByBytes;

impl Weighter<(Arc<str>, Part), Cached> for ByBytes {
    fn weight(&self, _: &(Arc<str>, Part), value: &Cached) -> u64 {
        let bytes = match value {
            Cached::File(bytes) => bytes.len(),
            Cached::Index(index) => index.bytes,
            Cached::Calls(calls) => calls.len() * 4,
        };
        bytes as u64 + 100
    }
}

/// Stacks and values of rows.
pub(crate) type StackValues = (Vec<i32>, Vec<i64>);

/// A stored block.
pub(crate) struct Block {
    pub meta: BlockMeta,
    /// Directory in the bucket.
    pub folder: Arc<str>,
    /// The block is damaged and ignored.
    pub set_aside: AtomicBool,
    /// Whether the stacks have too many calls for queries to share.
    pub is_alone: AtomicBool,
    /// Whether there was no memory to merge it with the block after it.
    pub is_full: AtomicBool,
}

impl Block {
    pub fn new(meta: BlockMeta, folder: Arc<str>) -> Self {
        Self { meta, folder, set_aside: false.into(), is_alone: false.into(), is_full: false.into() }
    }

    /// Reads and verifies a file of the block.
    fn file(&self, bucket: &Bucket, table: BlockTable) -> Result<Bytes, StoreError> {
        let path = format!("{}/{}", self.folder, table.file());
        let damaged = |message: &str| StoreError::Damaged { path: path.clone(), message: message.into() };
        let meta = self.meta.file(table).ok_or_else(|| damaged("block.json doesn't list it"))?;
        let (bytes, _) = bucket.find(&path)?.ok_or_else(|| damaged("it is not there"))?;
        if bytes.len() as u64 != meta.bytes {
            return Err(damaged(&format!("{} bytes long instead of {}", bytes.len(), meta.bytes)));
        }
        if crc32c::crc32c(&bytes) != meta.crc32c {
            return Err(damaged("its checksum is another"));
        }
        Ok(bytes)
    }

    pub(super) fn table(
        &self,
        bucket: &Bucket,
        cache: Option<&BlockCache>,
        table: BlockTable,
    ) -> Result<TableReader, StoreError> {
        let key = (self.folder.clone(), Part::File(table));
        let bytes = match cache.and_then(|cache| cache.get(&key)) {
            Some(Cached::File(bytes)) => bytes,
            _ => {
                let bytes = self.file(bucket, table)?;
                if let Some(cache) = cache {
                    cache.insert(key, Cached::File(bytes.clone()));
                }
                bytes
            }
        };
        TableReader::new(bytes, table, &self.meta.counts).map_err(|error| self.damaged(table, &error))
    }

    pub(super) fn damaged(&self, table: BlockTable, error: &ParquetError) -> StoreError {
        StoreError::Damaged { path: format!("{}/{}", self.folder, table.file()), message: error.to_string() }
    }

    /// Series and profiles of the block.
    pub fn index(&self, bucket: &Bucket, cache: &BlockCache) -> Result<Arc<BlockIndex>, StoreError> {
        let key = (self.folder.clone(), Part::Index);
        if let Some(Cached::Index(index)) = cache.get(&key) {
            return Ok(index);
        }
        let series = self.table(bucket, None, BlockTable::Series)?;
        let profiles = self.table(bucket, None, BlockTable::Profiles)?;
        let index = BlockIndex::read(&series, &profiles);
        let index = Arc::new(index.map_err(|(table, error)| self.damaged(table, &error))?);
        cache.insert(key, Cached::Index(index.clone()));
        Ok(index)
    }

    /// Stacks and values of some sample rows.
    pub fn samples(
        &self,
        bucket: &Bucket,
        cache: &BlockCache,
        rows: &RowRanges,
    ) -> Result<StackValues, StoreError> {
        let table = self.table(bucket, Some(cache), BlockTable::Samples)?;
        let read = || Ok((table.i32_ranges(2, rows)?, table.i64_ranges(3, rows)?));
        read().map_err(|error| self.damaged(BlockTable::Samples, &error))
    }

    /// Stacks of some sample rows.
    fn sample_stacks(
        &self,
        bucket: &Bucket,
        cache: &BlockCache,
        rows: &RowRanges,
    ) -> Result<Vec<i32>, StoreError> {
        let table = self.table(bucket, Some(cache), BlockTable::Samples)?;
        table.i32_ranges(2, rows).map_err(|error| self.damaged(BlockTable::Samples, &error))
    }

    /// Samples of profiles, from the stacks and values of all their rows.
    pub fn samples_of<'r>(
        &'r self,
        profiles: &'r [ProfileRow],
        (stacks, values): (&'r [i32], &'r [i64]),
        nodes: &'r StackNodes,
    ) -> impl Iterator<Item = Result<StoredSample, StoreError>> + 'r {
        let profiles = profiles.iter().flat_map(|profile| std::iter::repeat_n(profile, profile.samples));
        let rows = stacks.iter().zip(values);
        profiles.zip(rows).map(|(profile, (&stack, &value))| {
            let stack = usize::try_from(stack).ok().and_then(|stack| *nodes.get(stack)?);
            let series = SeriesKey(profile.series);
            let sample = stack.map(|stack| StoredSample { series, time: profile.time, stack, value });
            sample.ok_or_else(|| {
                let missing = ParquetError::General("a sample has no stack".into());
                self.damaged(BlockTable::Samples, &missing)
            })
        })
    }

    /// Stacks and values of the hourly sums of chosen series, or `None` if the block has no such sums.
    pub fn hours(
        &self,
        bucket: &Bucket,
        cache: &BlockCache,
        chosen: &[bool],
    ) -> Result<Option<StackValues>, StoreError> {
        if self.meta.file(BlockTable::Hours).is_none() {
            return Ok(None);
        }
        let table = self.table(bucket, Some(cache), BlockTable::Hours)?;
        let is_chosen = |series: i32| usize::try_from(series).is_ok_and(|one| chosen.get(one) == Some(&true));
        let read = || {
            let series = table.i32s(0)?;
            let rows = (0..series.len()).filter(|&row| is_chosen(series[row]));
            let rows = RowRanges::joined(rows.map(|row| row..row + 1));
            Ok((table.i32_ranges(2, &rows)?, table.i64_ranges(3, &rows)?))
        };
        read().map(Some).map_err(|error| self.damaged(BlockTable::Hours, &error))
    }

    /// Rows of stacks of the block, and the table of frames. `used`: as in [`Self::stack_frames`].
    pub(super) fn stack_rows(
        &self,
        bucket: &Bucket,
        used: Option<&[i32]>,
    ) -> Result<(TableReader, StackRows), StoreError> {
        let frames = self.table(bucket, None, BlockTable::Frames)?;
        let stacks = self.table(bucket, None, BlockTable::Stacks)?;
        let rows = StackRows::read(&stacks, used, frames.rows());
        Ok((frames, rows.map_err(|error| self.damaged(BlockTable::Stacks, &error))?))
    }

    /// Frames and stacks of the block. `used`: numbers of the stacks that are needed, ascending; `None`: all.
    pub fn stack_frames(&self, bucket: &Bucket, used: Option<&[i32]>) -> Result<BlockStacks, StoreError> {
        let (frames, rows) = self.stack_rows(bucket, used)?;
        let mut dictionary = Dictionary::default();
        let frames = read_frames(&frames, &rows.frames, &mut dictionary)
            .map_err(|error| self.damaged(BlockTable::Frames, &error))?;
        Ok(BlockStacks { dictionary, frames, rows })
    }

    /// Dictionary of the block's frames and stacks, and the node of each stack by number.
    pub fn dictionary(&self, bucket: &Bucket) -> Result<(Dictionary, StackNodes), StoreError> {
        let mut dictionary = Dictionary::default();
        let nodes = self.add_all_stacks(bucket, &mut dictionary, usize::MAX)?;
        Ok((dictionary, nodes))
    }

    fn add_all_stacks(
        &self,
        bucket: &Bucket,
        all: &mut Dictionary,
        most_bytes: usize,
    ) -> Result<StackNodes, StoreError> {
        let as_sent = (&FrameNames::new(), None, most_bytes);
        self.stack_frames(bucket, None)?.add_to(all, as_sent, &Cancellation::default())
    }

    /// Contents of the block, whose samples are read on demand.
    pub fn contents<'b>(
        &'b self,
        bucket: &'b Bucket,
        cache: &'b BlockCache,
    ) -> Result<BlockContents<'b>, StoreError> {
        let index = self.index(bucket, cache)?;
        Ok(BlockContents { block: self, bucket, cache, index, nodes: Vec::new() })
    }
}

/// Node of each stack of a block by number, where it was read.
pub(crate) type StackNodes = Vec<Option<StackNodeId>>;

/// Stacks of a block, and their frames.
pub(crate) struct BlockStacks {
    /// The frames, without stacks.
    pub dictionary: Dictionary,
    frames: Vec<FrameKey>,
    rows: StackRows,
}

impl BlockStacks {
    /// Adds the stacks to a dictionary of at most `most_bytes`. Frames in `names` become these calls. `used`: numbers of the stacks to add, ascending;
    /// `None`: all.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if the dictionary becomes larger; cancellation.
    pub fn add_to(
        &self,
        all: &mut Dictionary,
        (names, used, most_bytes): (&FrameNames, Option<&[i32]>, usize),
        cancellation: &Cancellation,
    ) -> Result<StackNodes, StoreError> {
        let (keys, ends) = all.absorb_frames(&self.dictionary, &self.frames, names);
        let calls = |place: usize| &keys[place.checked_sub(1).map_or(0, |before| ends[before])..ends[place]];
        add_stacks(&self.rows, calls, (all, used, most_bytes), cancellation)
    }
}

/// A block as the source of another block.
pub(crate) struct BlockContents<'b> {
    block: &'b Block,
    bucket: &'b Bucket,
    cache: &'b BlockCache,
    index: Arc<BlockIndex>,
    /// Node of each stack by number in the shared dictionary.
    nodes: StackNodes,
}

impl BlockContents<'_> {
    /// Profiles of a series, and their rows.
    fn profiles_of(&self, series: usize) -> (&[ProfileRow], RowRanges) {
        let profiles = &self.index.profiles;
        let begin = profiles.partition_point(|profile| (profile.series as usize) < series);
        let end = profiles.partition_point(|profile| profile.series as usize <= series);
        let profiles = &profiles[begin..end];
        let rows = profiles.iter().map(|profile| profile.first..profile.first + profile.samples);
        (profiles, RowRanges::joined(rows))
    }
}

impl BlockSource for BlockContents<'_> {
    fn add_stacks(&mut self, all: &mut Dictionary, most_bytes: usize) -> Result<(), StoreError> {
        self.nodes = self.block.add_all_stacks(self.bucket, all, most_bytes)?;
        Ok(())
    }

    fn series(&self) -> Vec<&Labels> {
        self.index.series.iter().collect()
    }

    fn stacks(&self, series: usize) -> Result<Vec<StackNodeId>, StoreError> {
        let (_, rows) = self.profiles_of(series);
        let stacks = self.block.sample_stacks(self.bucket, self.cache, &rows)?;
        let node = |stack: i32| usize::try_from(stack).ok().and_then(|stack| *self.nodes.get(stack)?);
        // Samples without a stack are reported where they are read.
        Ok(stacks.into_iter().filter_map(node).collect())
    }

    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError> {
        let (profiles, rows) = self.profiles_of(series);
        let (stacks, values) = self.block.samples(self.bucket, self.cache, &rows)?;
        self.block.samples_of(profiles, (&stacks, &values), &self.nodes).collect()
    }
}

/// Frames by number.
fn read_frames(
    table: &TableReader,
    rows: &RowRanges,
    dictionary: &mut Dictionary,
) -> Result<Vec<FrameKey>, ParquetError> {
    // Equal texts once: those of a block may take little space in it and much in memory.
    let mut texts = |column: usize| -> Result<Vec<TextId>, ParquetError> {
        let mut ids = Vec::new();
        table.each_text(column, rows, |text| ids.push(dictionary.text(text)))?;
        Ok(ids)
    };
    let (functions, system_names, files) = (texts(1)?, texts(2)?, texts(3)?);
    let (mappings, build_ids) = (texts(6)?, texts(7)?);
    let (lines, starts) = (table.i32_ranges(4, rows)?, table.i32_ranges(5, rows)?);
    let addresses = table.i64_ranges(8, rows)?;
    let (offsets, inlined) = (table.bools(9, rows)?, table.bools(10, rows)?);
    let frame = |place: usize| {
        let frame = StoredFrame {
            function: functions[place],
            system_name: system_names[place],
            file: files[place],
            line: lines[place].cast_unsigned(),
            start_line: starts[place].cast_unsigned(),
            mapping: mappings[place],
            build_id: build_ids[place],
            address: addresses[place].cast_unsigned(),
            is_file_offset: offsets[place],
            inlined: inlined[place],
        };
        dictionary.frame(frame)
    };
    Ok((0..functions.len()).map(frame).collect())
}

/// Adds stacks to a dictionary, each frame as its calls, outermost first.
fn add_stacks<'k>(
    rows: &StackRows,
    calls: impl Fn(usize) -> &'k [FrameKey],
    (dictionary, used, most_bytes): (&mut Dictionary, Option<&[i32]>, usize),
    cancellation: &Cancellation,
) -> Result<StackNodes, StoreError> {
    let is_used = |number: usize| {
        used.is_none_or(|used| i32::try_from(number).is_ok_and(|one| used.binary_search(&one).is_ok()))
    };
    let mut stacks = vec![None; rows.count];
    // A stack shares its outer frames with the previous one.
    let (mut before, mut path): (&[u32], Vec<Option<StackNodeId>>) = (&[], Vec::new());
    for (number, stack) in rows.iter().filter(|&(number, _)| is_used(number)) {
        cancellation.check()?;
        StoreError::check_memory(dictionary.memory(), most_bytes)?;
        let shared = stack.iter().zip(before).take_while(|(one, other)| one == other).count();
        path.truncate(shared);
        for &place in &stack[shared..] {
            let caller = path.last().copied().flatten();
            let node = calls(place as usize)
                .iter()
                .fold(caller, |caller, &frame| Some(dictionary.call(caller, frame)));
            path.push(node);
        }
        if let (Some(slot), Some(&node)) = (stacks.get_mut(number), path.last()) {
            *slot = node;
        }
        before = stack;
    }
    Ok(stacks)
}
