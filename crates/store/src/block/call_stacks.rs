//! A block's stacks as names of functions: what sums by call need of it, without files, lines and what is equal but for these.

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::read::Block;
use super::row_ranges::RowRanges;
use super::schema::BlockTable;
use super::stack_rows::StackRows;
use super::table_reader::TableReader;
use crate::bucket::Bucket;
use crate::dictionary::{Dictionary, FrameKey, StoredFrame};
use crate::error::StoreError;

/// The name of a frame.
pub(crate) enum FrameName {
    /// As it was sent, in UTF-8. Most are not needed: none is copied.
    Known(ByteArray),
    /// Equal to the name of the previous frame.
    Same,
    /// The frame's file may have the name; index in [`CallStacks::nameless`].
    Missing(FrameKey),
}

/// Names of frames, and stacks of these.
pub(crate) struct CallStacks {
    /// By place of the frame among those that were read.
    pub names: Vec<FrameName>,
    /// Frames whose names their files may tell.
    pub nameless: Dictionary,
    rows: StackRows,
}

impl CallStacks {
    /// Each stack's number, and its frames by place, outermost first. Stacks between needed ones may be among them.
    pub fn stacks(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.rows.iter()
    }
}

impl Block {
    /// Returns stacks of the block by name. `used`: numbers of those that are needed, ascending; `None`: all.
    pub fn call_stacks(&self, bucket: &Bucket, used: Option<&[i32]>) -> Result<CallStacks, StoreError> {
        let (frames, rows) = self.stack_rows(bucket, used)?;
        let (names, nameless) =
            names(&frames, &rows.frames).map_err(|error| self.damaged(BlockTable::Frames, &error))?;
        Ok(CallStacks { names, nameless, rows })
    }
}

fn names(table: &TableReader, rows: &RowRanges) -> Result<(Vec<FrameName>, Dictionary), ParquetError> {
    let functions = table.bytes(1, rows)?;
    let mut nameless = Dictionary::default();
    let addresses = table.i64_ranges(8, rows)?;
    let is_nameless = |place: usize| functions[place].is_empty() || addresses[place] != 0;
    let mut missing = Vec::new();
    if (0..functions.len()).any(is_nameless) {
        missing = nameless_frames(table, rows, (&functions, &addresses), &mut nameless)?;
    }
    let mut names = Vec::with_capacity(functions.len());
    let mut before = None;
    for (place, bytes) in functions.iter().enumerate() {
        let function = bytes.as_utf8()?;
        let missing = missing.get(place).filter(|_| is_nameless(place));
        names.push(match missing {
            Some(&key) => FrameName::Missing(key),
            None if before == Some(function) => FrameName::Same,
            None => FrameName::Known(bytes.clone()),
        });
        before = Some(function).filter(|_| missing.is_none());
    }
    Ok((names, nameless))
}

/// By frame where its code is.
fn nameless_frames(
    table: &TableReader,
    rows: &RowRanges,
    (functions, addresses): (&[ByteArray], &[i64]),
    nameless: &mut Dictionary,
) -> Result<Vec<FrameKey>, ParquetError> {
    let (mappings, build_ids) = (table.texts(6, rows)?, table.texts(7, rows)?);
    let offsets = table.bools(9, rows)?;
    let mut frame = |place: usize| -> Result<FrameKey, ParquetError> {
        let frame = StoredFrame {
            function: nameless.text(functions[place].as_utf8()?),
            mapping: nameless.text(&mappings[place]),
            build_id: nameless.text(&build_ids[place]),
            address: addresses[place].cast_unsigned(),
            is_file_offset: offsets[place],
            ..StoredFrame::default()
        };
        Ok(nameless.frame(frame))
    };
    (0..mappings.len()).map(&mut frame).collect()
}
