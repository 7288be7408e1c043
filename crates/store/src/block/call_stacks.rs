//! A block's stacks as names of functions: what sums by call need of it, without files, lines and what is equal but for these.

use parquet::errors::ParquetError;

use super::read::Block;
use super::row_ranges::RowRanges;
use super::schema::BlockTable;
use super::stack_rows::StackRows;
use super::table_reader::TableReader;
use crate::bucket::Bucket;
use crate::dictionary::{Dictionary, FrameKey, StoredFrame};
use crate::error::StoreError;
use crate::texts::Texts;

/// The name of a frame.
pub(crate) enum FrameName {
    /// As it was sent; index in [`CallStacks::texts`]. Adjacent frames of one name have the same index.
    Known(u32),
    /// The frame's file may have the name; index in [`CallStacks::nameless`].
    Missing(FrameKey),
}

/// Names of frames, and stacks of these.
pub(crate) struct CallStacks {
    /// By place of the frame among those that were read.
    pub names: Vec<FrameName>,
    pub texts: Texts,
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
        let damaged = |error: ParquetError| self.damaged(BlockTable::Frames, &error);
        let (texts, known) = texts(&frames, &rows.frames).map_err(damaged)?;
        let (names, nameless) = names(&frames, &rows.frames, (&texts, known)).map_err(damaged)?;
        Ok(CallStacks { names, texts, nameless, rows })
    }
}

/// The names that were sent, and which one each frame has.
fn texts(table: &TableReader, rows: &RowRanges) -> Result<(Texts, Vec<u32>), ParquetError> {
    let (mut texts, mut known) = (Texts::default(), Vec::new());
    table.each_text(1, rows, |name| known.push(texts.push(name)))?;
    Ok((texts, known))
}

fn names(
    table: &TableReader,
    rows: &RowRanges,
    (texts, known): (&Texts, Vec<u32>),
) -> Result<(Vec<FrameName>, Dictionary), ParquetError> {
    let mut nameless = Dictionary::default();
    let addresses = table.i64_ranges(8, rows)?;
    let may_be_missing: Vec<bool> = known
        .iter()
        .zip(&addresses)
        .map(|(&name, &address)| address != 0 || texts.get(name).is_empty())
        .collect();
    let mut names: Vec<FrameName> = known.into_iter().map(FrameName::Known).collect();
    if may_be_missing.contains(&true) {
        let frames = nameless_frames(table, rows, (&names, texts, &addresses), &mut nameless)?;
        for ((name, frame), is_missing) in names.iter_mut().zip(frames).zip(may_be_missing) {
            if is_missing {
                *name = FrameName::Missing(frame);
            }
        }
    }
    Ok((names, nameless))
}

/// By frame where its code is.
fn nameless_frames(
    table: &TableReader,
    rows: &RowRanges,
    (names, texts, addresses): (&[FrameName], &Texts, &[i64]),
    nameless: &mut Dictionary,
) -> Result<Vec<FrameKey>, ParquetError> {
    let (mappings, build_ids) = (table.bytes(6, rows)?, table.bytes(7, rows)?);
    let offsets = table.bools(9, rows)?;
    let mut frame = |place: usize| -> Result<FrameKey, ParquetError> {
        let function = match names[place] {
            FrameName::Known(name) => texts.get(name),
            FrameName::Missing(_) => "",
        };
        let frame = StoredFrame {
            function: nameless.text(function),
            mapping: nameless.text(mappings[place].as_utf8()?),
            build_id: nameless.text(build_ids[place].as_utf8()?),
            address: addresses[place].cast_unsigned(),
            is_file_offset: offsets[place],
            ..StoredFrame::default()
        };
        Ok(nameless.frame(frame))
    };
    (0..mappings.len()).map(&mut frame).collect()
}
