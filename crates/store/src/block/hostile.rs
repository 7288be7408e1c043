//! Blocks that somebody forged: each is read or reported as damaged, in the memory that a block of its rows needs.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object_store::memory::InMemory;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::meta::FileMeta;
use super::read::ByBytes;
use super::schema::BlockTable;
use super::source::BatchSource;
use super::write::{EncodedBlock, encode};
use super::{Block, BlockCache, BlockMeta, RowRanges};
use crate::batch::{Batch, Millis, StoredSample};
use crate::bucket::Bucket;
use crate::dictionary::StoredFrame;
use crate::error::StoreError;
use crate::labels::Labels;

/// Frames of a block, enough for a page of long texts to be too much.
const FRAMES: usize = 3000;

/// A block of two services, with sums by hour, and this number of stacks.
fn block(frames: usize, name: impl Fn(usize) -> String) -> EncodedBlock {
    let mut batch = Batch::default();
    for number in 0..frames {
        let service = if number % 3 == 0 { "a" } else { "b" };
        let series = batch.series(Labels::new([("service_name", service), ("host", "one")]));
        let dictionary = &mut batch.dictionary;
        let function = dictionary.text(&name(number));
        let (file, mapping) = (dictionary.text("main.c"), dictionary.text("/usr/bin/service"));
        let frame = StoredFrame { function, file, mapping, line: number as u32, ..StoredFrame::default() };
        let frame = dictionary.frame(frame);
        let main = dictionary.frame(StoredFrame { function: mapping, ..StoredFrame::default() });
        let caller = dictionary.call(None, main);
        let stack = dictionary.call(Some(caller), frame);
        let time = Millis(1_577_836_800_000 + (number / 100) as i64 * 10_000);
        batch.push(StoredSample { series, time, stack, value: number as i64 });
    }
    encode(&mut [&mut BatchSource::new(&batch)], 1, usize::MAX).unwrap().unwrap()
}

fn short_names() -> EncodedBlock {
    block(FRAMES, |number| format!("function_{}", number % 700))
}

/// Stores a block with matching checksums, as one who forges a block does, and reads all of it in all ways. Returns its value, and the length of its
/// longest name.
fn read(encoded: &EncodedBlock) -> Result<(i64, usize), StoreError> {
    let bucket = Bucket::memory(Arc::new(InMemory::new()))?;
    let mut files = BTreeMap::new();
    for (table, bytes) in &encoded.files {
        bucket.put(&format!("b/{}", table.file()), bytes.clone())?;
        let meta = FileMeta { bytes: bytes.len() as u64, crc32c: crc32c::crc32c(bytes) };
        files.insert(table.file().to_owned(), meta);
    }
    let meta = BlockMeta { counts: encoded.counts, files, ..BlockMeta::named("b") };
    let block = Block::new(meta, "b".into());
    let cache = BlockCache::with_weighter(10, 64 << 20, ByBytes);
    let index = block.index(&bucket, &cache)?;
    let rows = index.profiles.iter().map(|profile| profile.first..profile.first + profile.samples);
    let values = block.samples(&bucket, &cache, &RowRanges::joined(rows))?;
    let (dictionary, nodes) = block.dictionary(&bucket)?;
    let samples = block.samples_of(&index.profiles, (&values.0, &values.1), &nodes);
    let total = samples.map(|sample| sample.map(|one| one.value)).sum::<Result<i64, StoreError>>()?;
    block.hours(&bucket, &cache, &[true, true])?;
    block.call_stacks(&bucket, None)?;
    block.call_stacks(&bucket, Some(&[5, 150]))?;
    block.stack_frames(&bucket, Some(&[7, 190]))?;
    // As compaction reads it.
    encode(&mut [&mut block.contents(&bucket, &cache)?], 2, usize::MAX)?;
    let names = dictionary.frames().map(|frame| dictionary.resolve(frame.function).len());
    Ok((total, names.max().unwrap_or(0)))
}

/// The message about a damaged file of the block.
fn damage(encoded: &EncodedBlock, table: BlockTable) -> String {
    match read(encoded) {
        Err(StoreError::Damaged { path, message }) => {
            assert_eq!(path, format!("b/{}", table.file()), "{message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

fn file(encoded: &EncodedBlock, table: BlockTable) -> Bytes {
    encoded.files.iter().find(|(one, _)| *one == table).unwrap().1.clone()
}

fn replaced(mut encoded: EncodedBlock, table: BlockTable, bytes: Bytes) -> EncodedBlock {
    encoded.files.iter_mut().find(|(one, _)| *one == table).unwrap().1 = bytes;
    encoded
}

/// A forged column chunk: its pages, and the numbers of values and of rows that the footer claims.
struct Forged {
    column: usize,
    pages: Vec<u8>,
    values: i64,
}

/// A table of one row group in which a column is forged.
fn with_forged(bytes: &Bytes, forged: &Forged) -> Bytes {
    let file = SerializedFileReader::new(bytes.clone()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let real = file.metadata().row_group(0);
    for (place, chunk) in real.columns().iter().enumerate() {
        let close = |metadata: ColumnChunkMetaData| ColumnCloseResult {
            bytes_written: metadata.compressed_size() as u64,
            rows_written: real.num_rows() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        if place == forged.column {
            let metadata = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
                .set_compression_codec(chunk.compression_codec())
                .set_total_compressed_size(forged.pages.len() as i64)
                .set_num_values(forged.values)
                .build()
                .unwrap();
            group.append_column(&Bytes::from(forged.pages.clone()), close(metadata)).unwrap();
        } else {
            group.append_column(bytes, close(chunk.clone())).unwrap();
        }
    }
    group.close().unwrap();
    writer.into_inner().unwrap().into()
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A data page: its header in Thrift's compact protocol, and its compressed values.
fn page(values: u64, encoding: u64, contents: &[u8]) -> Vec<u8> {
    let packed = zstd::encode_all(contents, 3).unwrap();
    let mut bytes = Vec::new();
    // Fields of 32 bits: kind, sizes; then the header of a data page with levels in RLE.
    let field = |bytes: &mut Vec<u8>, value: u64| {
        bytes.push(0x15);
        varint(bytes, value * 2);
    };
    [0, contents.len() as u64, packed.len() as u64].into_iter().for_each(|value| field(&mut bytes, value));
    bytes.push(0x2c);
    [values, encoding, 3, 3].into_iter().for_each(|value| field(&mut bytes, value));
    bytes.extend([0, 0]);
    bytes.extend(packed);
    bytes
}

/// A stream of lengths, each by `more` longer than the one before, in blocks of this size.
fn lengths(block: u64, first: u64, more: u64, count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    [block, 1, count, first * 2].into_iter().for_each(|value| varint(&mut bytes, value));
    for _ in 0..(count - 1).div_ceil(block) {
        varint(&mut bytes, more * 2);
        bytes.push(0);
    }
    bytes
}

const PLAIN: u64 = 0;
const DELTA_BINARY_PACKED: u64 = 5;
const DELTA_BYTE_ARRAY: u64 = 7;
const MOST: u64 = (1 << 31) - 1;

#[test]
fn a_page_that_claims_two_thousand_million_values_is_damage() {
    let forged = |column: usize, encoding: u64, contents: &[u8], values: i64| {
        let real = short_names();
        let pages = page(MOST, encoding, contents);
        let bytes = with_forged(&file(&real, BlockTable::Frames), &Forged { column, pages, values });
        damage(&replaced(real, BlockTable::Frames, bytes), BlockTable::Frames)
    };
    // The footer claims them too, or not.
    let message = forged(1, PLAIN, &[0; 64], MOST as i64);
    assert!(
        message.contains("column function at offset") && message.contains("number of values"),
        "{message}"
    );
    let message = forged(1, DELTA_BYTE_ARRAY, &lengths(128, 0, 0, 1), FRAMES as i64);
    assert!(message.contains("more values than a page has"), "{message}");
    let message = forged(8, PLAIN, &[0; 64], FRAMES as i64);
    assert!(message.contains("column address at offset"), "{message}");
    // As lists, whose rows are counted while they are read.
    let real = short_names();
    let pages = page(MOST, PLAIN, &[0; 64]);
    let forged = Forged { column: 2, pages, values: MOST as i64 };
    let bytes = with_forged(&file(&real, BlockTable::Stacks), &forged);
    let message = damage(&replaced(real, BlockTable::Stacks, bytes), BlockTable::Stacks);
    assert!(message.contains("more values than a page has"), "{message}");
}

#[test]
fn a_small_page_of_long_texts_is_damage() {
    let forged = |prefixes: Vec<u8>, suffixes: Vec<u8>, text: usize| {
        let real = short_names();
        let contents = [prefixes, suffixes, vec![b'x'; text]].concat();
        let pages = page(FRAMES as u64, DELTA_BYTE_ARRAY, &contents);
        assert!(pages.len() < 2000, "{}", pages.len());
        let table = Forged { column: 1, pages, values: FRAMES as i64 };
        let bytes = with_forged(&file(&real, BlockTable::Frames), &table);
        damage(&replaced(real, BlockTable::Frames, bytes), BlockTable::Frames)
    };
    // 3,000 texts, each the one before and 400 bytes: 1.8 GB.
    let count = FRAMES as u64;
    let (prefixes, suffixes) = (lengths(65536, 0, 400, count), lengths(65536, 400, 0, count));
    let message = forged(prefixes, suffixes, 400 * FRAMES);
    assert!(
        message.contains("column function at offset") && message.contains("more than its rows"),
        "{message}"
    );
    // More lengths than values, of prefixes or of suffixes.
    let some = || lengths(65536, 0, 0, count);
    for (prefixes, suffixes) in
        [(lengths(1 << 31, 0, 0, MOST), some()), (some(), lengths(1 << 31, 0, 0, MOST))]
    {
        let message = forged(prefixes, suffixes, 0);
        assert!(message.contains("malformed lengths"), "{message}");
    }
    // A page of 300 MiB of one byte.
    let real = short_names();
    let pages = page(FRAMES as u64, PLAIN, &vec![0; 300 << 20]);
    let table = Forged { column: 1, pages, values: FRAMES as i64 };
    let bytes = with_forged(&file(&real, BlockTable::Frames), &table);
    let message = damage(&replaced(real, BlockTable::Frames, bytes), BlockTable::Frames);
    assert!(message.contains("more than its rows"), "{message}");
}

#[test]
fn rows_that_the_block_cannot_have_are_damage() {
    let mut fewer = short_names();
    fewer.counts.frames -= 2;
    assert!(damage(&fewer, BlockTable::Frames).contains("more rows than the block can have"));
    // Claimed by block.json, the footer and a page, which has no bytes for them.
    let mut real = short_names();
    let forged = Forged {
        column: 0,
        pages: page(3000, DELTA_BINARY_PACKED, &lengths(65536, 0, 1, 3000)),
        values: 1 << 40,
    };
    let bytes = with_forged(&file(&real, BlockTable::Profiles), &forged);
    real.counts.profiles = 1 << 40;
    damage(&replaced(real, BlockTable::Profiles, bytes), BlockTable::Profiles);
}

#[test]
fn long_names_that_compress_well_are_read() {
    let sum: i64 = (0..FRAMES as i64).sum();
    let long = "std::vector<std::vector<int>>::".repeat(2000);
    // A thousand names of 62 kB, which differ in their end: 62 MB in some kB. They are whole.
    let encoded =
        block(
            FRAMES,
            |number| if number % 3 == 0 { format!("{long}{}", number % 30) } else { number.to_string() },
        );
    let bytes: usize = encoded.files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 100_000, "{bytes}");
    assert_eq!(read(&encoded).unwrap(), (sum, long.len() + 2));
    // Names of 4 kB are whole, whatever their number; 186 MB of longer ones are shortened where they are written.
    let encoded = block(FRAMES, |number| format!("{}{number:04}", &long[..4000]));
    assert_eq!(read(&encoded).unwrap(), (sum, 4004));
    let encoded = block(FRAMES, |number| format!("{long}{number}"));
    assert_eq!(read(&encoded).unwrap(), (sum, 4096));
}

#[test]
fn changed_bytes_are_damage_or_other_contents() {
    let whole = block(200, |number| format!("function_{}", number % 70));
    let (mut damaged, mut state) = (0, 1_u64);
    let mut random = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let count = std::env::var("PLUMB_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    for _ in 0..count {
        let mut encoded = EncodedBlock { files: whole.files.clone(), ..whole };
        let place = random(encoded.files.len());
        let mut bytes = encoded.files[place].1.to_vec();
        for _ in 0..=random(3) {
            // Half of the changes are in headers, footers and indexes, which are small.
            let at = match random(2) {
                0 => random(bytes.len()),
                _ => bytes.len() - 1 - random(bytes.len().min(2000)),
            };
            bytes[at] = if random(2) == 0 { random(256) as u8 } else { bytes[at] ^ 1 << random(8) };
        }
        encoded.files[place].1 = bytes.into();
        match read(&encoded) {
            Ok(_) => {}
            Err(StoreError::Damaged { .. }) => damaged += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(damaged > count / 3, "{damaged}");
}
