//! Writes a block: the samples of heads or of other blocks, sorted.
//!
//! All stacks are in memory at once, but samples of only one series.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::limits::{ROOMY_TEXT, most_text};
use super::meta::BlockCounts;
use super::order::{BlockOrder, Owner, stack_hashes};
use super::schema::{BlockTable, GROUP};
use super::source::BlockSource;
use super::table_writer::{TableWriter, Values, texts};
use crate::batch::Millis;
use crate::dictionary::{Dictionary, StackNodeId, StoredFrame, TextId};
use crate::error::StoreError;
use crate::labels::{Labels, PROFILE_TYPE, SERVICE};

/// Milliseconds whose samples are summed up in the table of hours.
pub(crate) const HOUR: i64 = 3_600_000;

/// An encoded block that is not stored yet.
pub(crate) struct EncodedBlock {
    pub files: Vec<(BlockTable, Bytes)>,
    pub counts: BlockCounts,
    /// Timestamps of its first and last sample.
    pub span: (Millis, Millis),
    /// Number of sources that it has the samples of: the first ones.
    pub sources: usize,
}

fn failed(error: &ParquetError) -> StoreError {
    StoreError::Damaged { path: "a new block".into(), message: error.to_string() }
}

/// Encodes a block from several sources: from the first ones whose stacks together take at most `most_bytes` of memory, and from one at least. Returns
/// `None` if they have no sample. Compacted blocks (`level` above 0) have a table of hours and higher compression.
pub(crate) fn encode(
    sources: &mut [&mut dyn BlockSource],
    level: u8,
    most_bytes: usize,
) -> Result<Option<EncodedBlock>, StoreError> {
    let packing = if level == 0 { 3 } else { 9 };
    let mut dictionary = Dictionary::default();
    let taken = add_stacks(sources, &mut dictionary, most_bytes)?;
    let sources: Vec<&dyn BlockSource> = sources[..taken].iter().map(|source| &**source).collect();
    let (owners, services) = owners(&sources, dictionary.nodes().len())?;
    let order = BlockOrder::new(&dictionary, &owners);
    let mut series: BTreeMap<&Labels, Vec<(usize, usize)>> = BTreeMap::new();
    for (place, source) in sources.iter().enumerate() {
        for (number, labels) in source.series().into_iter().enumerate() {
            series.entry(labels).or_default().push((place, number));
        }
    }
    let mut writing = Writing::new(packing, level > 0).map_err(|error| failed(&error))?;
    for (labels, parts) in series {
        let mut rows: Vec<Row> = Vec::new();
        for (source, number) in parts {
            let number_of = |stack: StackNodeId| order.stack_numbers[stack.0 as usize];
            rows.extend(sources[source].samples(number)?.into_iter().map(|sample| Row {
                time: sample.time,
                stack: number_of(sample.stack),
                value: sample.value,
            }));
        }
        writing.series(labels, rows).map_err(|error| failed(&error))?;
    }
    let Some(span) = writing.span else { return Ok(None) };
    let mut counts = writing.counts;
    (counts.stacks, counts.frames) = (order.stacks.len() as u64, order.frames.len() as u64);
    let depths = dictionary.depths();
    counts.stack_frames = order.stacks.iter().map(|&node| u64::from(depths[node as usize])).sum();
    let mut files = writing.finish().map_err(|error| failed(&error))?;
    let format = (packing, services);
    files.push((BlockTable::Stacks, stacks(&dictionary, &order, format).map_err(|error| failed(&error))?));
    files.push((BlockTable::Frames, frames(&dictionary, &order, format).map_err(|error| failed(&error))?));
    Ok(Some(EncodedBlock { files, counts, span, sources: taken }))
}

/// Adds the stacks of the first sources that there is memory for. Returns their number.
fn add_stacks(
    sources: &mut [&mut dyn BlockSource],
    dictionary: &mut Dictionary,
    most_bytes: usize,
) -> Result<usize, StoreError> {
    for (place, source) in sources.iter_mut().enumerate() {
        let before = dictionary.lengths();
        let most = if place == 0 { usize::MAX } else { most_bytes };
        match source.add_stacks(dictionary, most) {
            Err(StoreError::TooLarge { .. }) if place > 0 => {
                dictionary.truncate(before);
                return Ok(place);
            }
            added => added?,
        }
    }
    Ok(sources.len())
}

/// Services that have the stack of each node, and the number of services.
fn owners(sources: &[&dyn BlockSource], nodes: usize) -> Result<(Vec<Owner>, usize), StoreError> {
    let all = || sources.iter().flat_map(|source| source.series());
    let service = |labels: &Labels| labels.get(SERVICE).unwrap_or_default().to_owned();
    let services: BTreeSet<String> = all().map(service).collect();
    let ranks: HashMap<&str, u32> = services.iter().map(|service| &**service).zip(0..).collect();
    let mut owners = vec![Owner::default(); nodes];
    for source in sources {
        for (number, labels) in source.series().into_iter().enumerate() {
            let owner = Owner::service(ranks[labels.get(SERVICE).unwrap_or_default()]);
            for stack in source.stacks(number)? {
                owners[stack.0 as usize].add(owner);
            }
        }
    }
    Ok((owners, services.len()))
}

#[derive(Clone, Copy)]
struct Row {
    time: Millis,
    stack: u32,
    value: i64,
}

/// Sorts rows, and merges those with the same time and stack.
fn summed(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable_by_key(|row| (row.time, row.stack));
    rows.dedup_by(|next, row| {
        let same = (next.time, next.stack) == (row.time, row.stack);
        row.value = if same { row.value.saturating_add(next.value) } else { row.value };
        same
    });
    rows
}

/// Columns of samples, buffered up to a full row group.
struct SampleColumns {
    writer: TableWriter,
    series: Vec<i32>,
    times: Vec<i64>,
    stacks: Vec<i32>,
    values: Vec<i64>,
}

impl SampleColumns {
    fn new(table: BlockTable, packing: i32) -> Result<Self, ParquetError> {
        let writer = TableWriter::new(table, packing)?;
        Ok(Self { writer, series: vec![], times: vec![], stacks: vec![], values: vec![] })
    }

    fn push(&mut self, series: i32, row: Row) -> Result<(), ParquetError> {
        self.series.push(series);
        self.times.push(row.time.0);
        self.stacks.push(row.stack.cast_signed());
        self.values.push(row.value);
        if self.series.len() == GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.series.is_empty() {
            return Ok(());
        }
        self.writer.group(&[
            Values::I32(&self.series),
            Values::I64(&self.times),
            Values::I32(&self.stacks),
            Values::I64(&self.values),
        ])?;
        self.series.clear();
        self.times.clear();
        self.stacks.clear();
        self.values.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Bytes, ParquetError> {
        self.flush()?;
        self.writer.finish()
    }
}

/// Columns of profiles.
#[derive(Default)]
struct ProfileColumns {
    series: Vec<i32>,
    times: Vec<i64>,
    samples: Vec<i32>,
    totals: Vec<i64>,
}

/// A block in progress, to which series are added one by one.
struct Writing {
    packing: i32,
    labels: Vec<Labels>,
    samples: SampleColumns,
    hours: Option<SampleColumns>,
    profiles: ProfileColumns,
    counts: BlockCounts,
    span: Option<(Millis, Millis)>,
}

impl Writing {
    fn new(packing: i32, with_hours: bool) -> Result<Self, ParquetError> {
        let hours = with_hours.then(|| SampleColumns::new(BlockTable::Hours, packing)).transpose()?;
        Ok(Self {
            packing,
            labels: Vec::new(),
            samples: SampleColumns::new(BlockTable::Samples, packing)?,
            hours,
            profiles: ProfileColumns::default(),
            counts: BlockCounts::default(),
            span: None,
        })
    }

    fn series(&mut self, labels: &Labels, rows: Vec<Row>) -> Result<(), ParquetError> {
        let rows = summed(rows);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let (from, until) = self.span.unwrap_or((first.time, last.time));
        self.span = Some((from.min(first.time), until.max(last.time)));
        let number = self.labels.len() as i32;
        self.labels.push(labels.clone());
        for profile in rows.chunk_by(|one, next| one.time == next.time) {
            self.profiles.series.push(number);
            self.profiles.times.push(profile[0].time.0);
            self.profiles.samples.push(profile.len() as i32);
            self.profiles.totals.push(profile.iter().fold(0, |sum, row| sum.saturating_add(row.value)));
        }
        rows.iter().try_for_each(|&row| self.samples.push(number, row))?;
        self.counts.series += 1;
        self.counts.samples += rows.len() as u64;
        self.counts.profiles = self.profiles.series.len() as u64;
        if let Some(hours) = &mut self.hours {
            let hour = |time: Millis| Millis(time.0 - time.0.rem_euclid(HOUR));
            let rows = rows.into_iter().map(|row| Row { time: hour(row.time), ..row }).collect();
            summed(rows).into_iter().try_for_each(|row| hours.push(number, row))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<(BlockTable, Bytes)>, ParquetError> {
        let mut files = vec![(BlockTable::Samples, self.samples.finish()?)];
        if let Some(hours) = self.hours {
            files.push((BlockTable::Hours, hours.finish()?));
        }
        let mut profiles = TableWriter::new(BlockTable::Profiles, self.packing)?;
        profiles.group(&[
            Values::I32(&self.profiles.series),
            Values::I64(&self.profiles.times),
            Values::I32(&self.profiles.samples),
            Values::I64(&self.profiles.totals),
        ])?;
        files.push((BlockTable::Profiles, profiles.finish()?));
        files.push((BlockTable::Series, series(&self.labels, self.packing)?));
        Ok(files)
    }
}

fn series(labels: &[Labels], packing: i32) -> Result<Bytes, ParquetError> {
    let numbers: Vec<i32> = (0..labels.len() as i32).collect();
    let of = |name: &'static str| texts(labels.iter().map(move |one| one.get(name).unwrap_or_default()));
    let lengths: Vec<usize> = labels.iter().map(Labels::len).collect();
    let pairs = || labels.iter().flat_map(Labels::iter);
    let mut table = TableWriter::new(BlockTable::Series, packing)?;
    table.group(&[
        Values::I32(&numbers),
        of(PROFILE_TYPE),
        of(SERVICE),
        Values::TextLists(pairs().map(|(name, _)| ByteArray::from(name)).collect(), &lengths),
        Values::TextLists(pairs().map(|(_, value)| ByteArray::from(value)).collect(), &lengths),
    ])?;
    table.finish()
}

fn stacks(
    dictionary: &Dictionary,
    order: &BlockOrder,
    (packing, services): (i32, usize),
) -> Result<Bytes, ParquetError> {
    let mut table = TableWriter::with_pages(BlockTable::Stacks, packing, services)?;
    let hashes = stack_hashes(dictionary);
    for (group, stacks) in order.stacks.chunks(GROUP).enumerate() {
        let first = (group * GROUP) as i32;
        let numbers: Vec<i32> = (first..first + stacks.len() as i32).collect();
        let group_hashes: Vec<i64> = stacks.iter().map(|&node| hashes[node as usize].cast_signed()).collect();
        let (mut elements, mut lengths) = (Vec::new(), Vec::with_capacity(stacks.len()));
        for &node in stacks {
            let first = elements.len();
            let frames = dictionary.frames_of(StackNodeId(node));
            elements.extend(frames.map(|frame| order.frame_numbers[frame.0 as usize].cast_signed()));
            elements[first..].reverse();
            lengths.push(elements.len() - first);
        }
        table.group(&[
            Values::I32(&numbers),
            Values::I64(&group_hashes),
            Values::I32Lists(&elements, &lengths),
        ])?;
    }
    table.finish()
}

/// The texts of a frame, in the order of its columns.
const FRAME_TEXTS: [fn(&StoredFrame) -> TextId; 5] = [
    |frame| frame.function,
    |frame| frame.system_name,
    |frame| frame.file,
    |frame| frame.mapping,
    |frame| frame.build_id,
];

/// The length to which the texts of a column are shortened, so that readers don't take it for a forged one: `usize::MAX` unless they are thousands of
/// bytes long on average.
fn longest_text<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    let (rows, bytes) = texts.fold((0, 0), |(rows, bytes), text| (rows + 1, bytes + text.len() as u64));
    if bytes > most_text(rows) { ROOMY_TEXT as usize } else { usize::MAX }
}

fn shortened(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

fn frames(
    dictionary: &Dictionary,
    order: &BlockOrder,
    (packing, services): (i32, usize),
) -> Result<Bytes, ParquetError> {
    let mut table = TableWriter::with_pages(BlockTable::Frames, packing, services)?;
    let frames = || order.frames.iter().map(|&key| dictionary.frame_at(key));
    let longest = FRAME_TEXTS.map(|of| longest_text(frames().map(|frame| dictionary.resolve(of(&frame)))));
    for (group, keys) in order.frames.chunks(GROUP).enumerate() {
        let first = (group * GROUP) as i32;
        let numbers: Vec<i32> = (first..first + keys.len() as i32).collect();
        let all: Vec<_> = keys.iter().map(|&key| dictionary.frame_at(key)).collect();
        let ints = |of: fn(&StoredFrame) -> u32| -> Vec<i32> {
            all.iter().map(|frame| of(frame).cast_signed()).collect()
        };
        let (lines, starts) = (ints(|frame| frame.line), ints(|frame| frame.start_line));
        let addresses: Vec<i64> = all.iter().map(|frame| frame.address.cast_signed()).collect();
        let offsets: Vec<bool> = all.iter().map(|frame| frame.is_file_offset).collect();
        let inlined: Vec<bool> = all.iter().map(|frame| frame.inlined).collect();
        let text = |column: usize| {
            let text = move |frame: &StoredFrame| dictionary.resolve(FRAME_TEXTS[column](frame));
            texts(all.iter().map(move |frame| shortened(text(frame), longest[column])))
        };
        table.group(&[
            Values::I32(&numbers),
            text(0),
            text(1),
            text(2),
            Values::I32(&lines),
            Values::I32(&starts),
            text(3),
            text(4),
            Values::I64(&addresses),
            Values::Bool(&offsets),
            Values::Bool(&inlined),
        ])?;
    }
    table.finish()
}
