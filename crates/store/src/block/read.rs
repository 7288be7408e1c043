//! Reads blocks: first the series and profiles, then the requested rows of samples.
//!
//! The results are kept in a cache of bounded size. Each file is verified against its checksum when it is read.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use foldhash::fast::RandomState;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::meta::BlockMeta;
use super::schema::BlockTable;
use super::source::BlockSource;
use super::table_reader::TableReader;
use crate::batch::{Millis, SeriesKey, StoredSample};
use crate::bucket::Bucket;
use crate::dictionary::{Dictionary, FrameKey, StackNodeId, StoredFrame};
use crate::error::StoreError;
use crate::labels::Labels;

/// Numbers of a block's stacks that a selection needs.
pub(crate) type UsedStacks = HashSet<i32, RandomState>;

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
            Cached::Index(index) => index.series.len() * 600 + index.profiles.len() * size_of::<ProfileRow>(),
            Cached::Calls(calls) => calls.len() * 4,
        };
        bytes as u64 + 100
    }
}

/// A profile in a block. Its samples are adjacent rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfileRow {
    pub series: u32,
    pub time: Millis,
    /// Row of its first sample.
    pub first: usize,
    pub samples: usize,
    pub total: i64,
}

/// Hourly sums of a block.
pub(crate) struct HourRows {
    pub series: Vec<i32>,
    pub stacks: Vec<i32>,
    pub values: Vec<i64>,
}

/// Series and profiles of a block.
pub(crate) struct BlockIndex {
    pub series: Vec<Labels>,
    /// Sorted by series and time.
    pub profiles: Vec<ProfileRow>,
}

/// A stored block.
pub(crate) struct Block {
    pub meta: BlockMeta,
    /// Directory in the bucket.
    pub folder: Arc<str>,
    /// The block is damaged and ignored.
    pub set_aside: AtomicBool,
}

impl Block {
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
        TableReader::new(bytes).map_err(|error| self.damaged(table, &error))
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
        let series = read_series(&series).map_err(|error| self.damaged(BlockTable::Series, &error))?;
        let profiles = self.table(bucket, None, BlockTable::Profiles)?;
        let profiles =
            read_profiles(&profiles).map_err(|error| self.damaged(BlockTable::Profiles, &error))?;
        if profiles.iter().any(|profile| profile.series as usize >= series.len()) {
            return Err(self.damaged(BlockTable::Profiles, &ParquetError::General("unknown series".into())));
        }
        let index = Arc::new(BlockIndex { series, profiles });
        cache.insert(key, Cached::Index(index.clone()));
        Ok(index)
    }

    /// Stacks and values of some sample rows.
    pub fn samples(
        &self,
        bucket: &Bucket,
        cache: &BlockCache,
        rows: &Range<usize>,
    ) -> Result<(Vec<i32>, Vec<i64>), StoreError> {
        let table = self.table(bucket, Some(cache), BlockTable::Samples)?;
        let read =
            || Ok((table.i32_range(2, rows.start, rows.end)?, table.i64_range(3, rows.start, rows.end)?));
        read().map_err(|error| self.damaged(BlockTable::Samples, &error))
    }

    /// Hourly sums of the block, or `None` if it has none.
    pub fn hours(&self, bucket: &Bucket, cache: &BlockCache) -> Result<Option<HourRows>, StoreError> {
        if self.meta.file(BlockTable::Hours).is_none() {
            return Ok(None);
        }
        let table = self.table(bucket, Some(cache), BlockTable::Hours)?;
        let read = || Ok(HourRows { series: table.i32s(0)?, stacks: table.i32s(2)?, values: table.i64s(3)? });
        read().map(Some).map_err(|error| self.damaged(BlockTable::Hours, &error))
    }

    /// Dictionary of the block's frames and stacks, and the node of each stack by number. `used`: only these stacks have one; `None`: all.
    pub fn dictionary(
        &self,
        bucket: &Bucket,
        used: Option<&UsedStacks>,
    ) -> Result<(Dictionary, Vec<Option<StackNodeId>>), StoreError> {
        let mut dictionary = Dictionary::default();
        let table = self.table(bucket, None, BlockTable::Stacks)?;
        let lists = table.i32_lists(2).map_err(|error| self.damaged(BlockTable::Stacks, &error))?;
        let table = self.table(bucket, None, BlockTable::Frames)?;
        let frames = read_frames(&table, &frames_of(&lists, used, table.rows()), &mut dictionary);
        let frames = frames.map_err(|error| self.damaged(BlockTable::Frames, &error))?;
        let stacks = read_stacks(&lists, &frames, used, &mut dictionary);
        let stacks = stacks.map_err(|error| self.damaged(BlockTable::Stacks, &error))?;
        Ok((dictionary, stacks))
    }

    /// Contents of the block without its samples, which are read on demand. `used`: as in [`Self::dictionary`].
    pub fn contents<'b>(
        &'b self,
        bucket: &'b Bucket,
        cache: &'b BlockCache,
        used: Option<&UsedStacks>,
    ) -> Result<BlockContents<'b>, StoreError> {
        let (dictionary, stacks) = self.dictionary(bucket, used)?;
        Ok(BlockContents {
            block: self,
            bucket,
            cache,
            index: self.index(bucket, cache)?,
            dictionary,
            stacks,
        })
    }
}

/// A block as the source of another block.
pub(crate) struct BlockContents<'b> {
    block: &'b Block,
    bucket: &'b Bucket,
    cache: &'b BlockCache,
    index: Arc<BlockIndex>,
    dictionary: Dictionary,
    /// Node of each stack by number, if it was asked for.
    stacks: Vec<Option<StackNodeId>>,
}

impl BlockContents<'_> {
    /// Samples of adjacent profiles.
    pub fn samples_of(&self, profiles: &[ProfileRow]) -> Result<Vec<StoredSample>, StoreError> {
        let (Some(first), Some(last)) = (profiles.first(), profiles.last()) else { return Ok(Vec::new()) };
        let rows = first.first..last.first + last.samples;
        let (stacks, values) = self.block.samples(self.bucket, self.cache, &rows)?;
        let mut samples = Vec::with_capacity(rows.len());
        for profile in profiles {
            let begin = profile.first - first.first;
            for place in begin..begin + profile.samples {
                let node = |&stack: &i32| *self.stacks.get(usize::try_from(stack).ok()?)?;
                let (Some(stack), Some(&value)) = (stacks.get(place).and_then(node), values.get(place))
                else {
                    let missing = ParquetError::General("a sample has no stack".into());
                    return Err(self.block.damaged(BlockTable::Samples, &missing));
                };
                samples.push(StoredSample {
                    series: SeriesKey(profile.series),
                    time: profile.time,
                    stack,
                    value,
                });
            }
        }
        Ok(samples)
    }
}

impl BlockSource for BlockContents<'_> {
    fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    fn series(&self) -> Vec<&Labels> {
        self.index.series.iter().collect()
    }

    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.dictionary.nodes().len()];
        self.stacks.iter().flatten().for_each(|stack| used[stack.0 as usize] = true);
        used
    }

    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError> {
        let profiles = &self.index.profiles;
        let begin = profiles.partition_point(|profile| (profile.series as usize) < series);
        let end = profiles.partition_point(|profile| profile.series as usize <= series);
        self.samples_of(&profiles[begin..end])
    }
}

fn read_series(table: &TableReader) -> Result<Vec<Labels>, ParquetError> {
    let (names, lengths) = table.text_lists(3)?;
    let (values, _) = table.text_lists(4)?;
    let mut pairs = names.into_iter().zip(values);
    Ok(lengths.iter().map(|&length| Labels::new(pairs.by_ref().take(length))).collect())
}

fn read_profiles(table: &TableReader) -> Result<Vec<ProfileRow>, ParquetError> {
    let (series, times) = (table.i32s(0)?, table.i64s(1)?);
    let (samples, totals) = (table.i32s(2)?, table.i64s(3)?);
    let mut first = 0;
    let rows = series.into_iter().zip(times).zip(samples).zip(totals);
    Ok(rows
        .map(|(((series, time), samples), total)| {
            let samples = usize::try_from(samples).unwrap_or(0);
            let row =
                ProfileRow { series: series.cast_unsigned(), time: Millis(time), first, samples, total };
            first += samples;
            row
        })
        .collect())
}

/// Elements of lists, and the length of each list.
type Lists = (Vec<i32>, Vec<usize>);

/// Whether each of `count` frames is in a stack that is used.
fn frames_of((elements, lengths): &Lists, used: Option<&UsedStacks>, count: usize) -> Vec<bool> {
    let mut needed = vec![false; count];
    let mut rest = &elements[..];
    for (&length, number) in lengths.iter().zip(0..) {
        let (stack, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        if used.is_none_or(|used| used.contains(&number)) {
            for &element in stack {
                let place = usize::try_from(element).ok();
                if let Some(needed) = place.and_then(|place| needed.get_mut(place)) {
                    *needed = true;
                }
            }
        }
    }
    needed
}

/// The frames that are needed, by number.
fn read_frames(
    table: &TableReader,
    needed: &[bool],
    dictionary: &mut Dictionary,
) -> Result<Vec<Option<FrameKey>>, ParquetError> {
    let (functions, system_names, files) = (table.bytes(1)?, table.bytes(2)?, table.bytes(3)?);
    let (lines, starts) = (table.i32s(4)?, table.i32s(5)?);
    let (mappings, build_ids) = (table.bytes(6)?, table.bytes(7)?);
    let (addresses, offsets, inlined) = (table.i64s(8)?, table.bools(9)?, table.bools(10)?);
    let mut frame = |place: usize| -> Result<FrameKey, ParquetError> {
        let mut text = |bytes: &ByteArray| bytes.as_utf8().map(|text| dictionary.text(text));
        let frame = StoredFrame {
            function: text(&functions[place])?,
            system_name: text(&system_names[place])?,
            file: text(&files[place])?,
            line: lines[place].cast_unsigned(),
            start_line: starts[place].cast_unsigned(),
            mapping: text(&mappings[place])?,
            build_id: text(&build_ids[place])?,
            address: addresses[place].cast_unsigned(),
            is_file_offset: offsets[place],
            inlined: inlined[place],
        };
        Ok(dictionary.frame(frame))
    };
    let is_needed = |place: usize| needed.get(place) == Some(&true);
    (0..functions.len()).map(|place| is_needed(place).then(|| frame(place)).transpose()).collect()
}

fn read_stacks(
    (elements, lengths): &Lists,
    frames: &[Option<FrameKey>],
    used: Option<&UsedStacks>,
    dictionary: &mut Dictionary,
) -> Result<Vec<Option<StackNodeId>>, ParquetError> {
    let missing = || ParquetError::General("a stack has a frame that is not there".into());
    let (mut stacks, mut rest) = (Vec::with_capacity(lengths.len()), &elements[..]);
    // A stack shares its outer frames with the previous one.
    let (mut before, mut path): (&[i32], Vec<StackNodeId>) = (&[], Vec::new());
    for (&length, number) in lengths.iter().zip(0..) {
        let (stack, after) = rest.split_at_checked(length).ok_or_else(missing)?;
        rest = after;
        if used.is_some_and(|used| !used.contains(&number)) {
            stacks.push(None);
            continue;
        }
        let shared = stack.iter().zip(before).take_while(|(one, other)| one == other).count();
        path.truncate(shared);
        for &element in &stack[shared..] {
            let frame = usize::try_from(element).ok().and_then(|place| *frames.get(place)?);
            path.push(dictionary.call(path.last().copied(), frame.ok_or_else(missing)?));
        }
        stacks.push(Some(*path.last().ok_or_else(missing)?));
        before = stack;
    }
    Ok(stacks)
}
