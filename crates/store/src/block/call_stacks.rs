//! A block's stacks as names of functions: what sums by call need of it, without files, lines and what is equal but for these.

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::read::Block;
use super::schema::BlockTable;
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
    /// By number of the frame.
    pub names: Vec<FrameName>,
    /// Frames whose names their files may tell.
    pub nameless: Dictionary,
    /// Frames of all stacks, outermost first.
    elements: Vec<i32>,
    /// Number of frames of each stack.
    lengths: Vec<usize>,
}

impl CallStacks {
    /// Each stack's frames, by number.
    pub fn stacks(&self) -> impl Iterator<Item = &[i32]> {
        let mut rest = &self.elements[..];
        self.lengths.iter().map(move |&length| {
            let (stack, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            stack
        })
    }
}

impl Block {
    /// Returns the stacks of the block by name.
    pub fn call_stacks(&self, bucket: &Bucket) -> Result<CallStacks, StoreError> {
        let table = self.table(bucket, None, BlockTable::Frames)?;
        let frames = names(&table).map_err(|error| self.damaged(BlockTable::Frames, &error))?;
        let table = self.table(bucket, None, BlockTable::Stacks)?;
        let lists = table.i32_lists(2).map_err(|error| self.damaged(BlockTable::Stacks, &error))?;
        let (names, nameless) = frames;
        let (elements, lengths) = lists;
        let is_there = |&element: &i32| usize::try_from(element).is_ok_and(|place| place < names.len());
        if !elements.iter().all(is_there) || lengths.contains(&0) {
            let message = "a stack has a frame that is not there, or none";
            return Err(self.damaged(BlockTable::Stacks, &ParquetError::General(message.into())));
        }
        Ok(CallStacks { names, nameless, elements, lengths })
    }
}

fn names(table: &TableReader) -> Result<(Vec<FrameName>, Dictionary), ParquetError> {
    let functions = table.bytes(1)?;
    let mut nameless = Dictionary::default();
    let addresses = table.i64s(8)?;
    let is_nameless = |place: usize, name: &str| name.is_empty() || addresses[place] != 0;
    let mut missing = Vec::new();
    if (0..functions.len()).any(|place| functions[place].is_empty() || addresses[place] != 0) {
        missing = nameless_frames(table, &addresses, &mut nameless)?;
    }
    let mut names = Vec::with_capacity(functions.len());
    let mut before = None;
    for (place, bytes) in functions.iter().enumerate() {
        let function = bytes.as_utf8()?;
        let missing = missing.get(place).filter(|_| is_nameless(place, function));
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
    addresses: &[i64],
    nameless: &mut Dictionary,
) -> Result<Vec<FrameKey>, ParquetError> {
    let (functions, mappings) = (table.texts(1)?, table.texts(6)?);
    let (build_ids, offsets) = (table.texts(7)?, table.bools(9)?);
    let frame = |place: usize| {
        let frame = StoredFrame {
            function: nameless.text(&functions[place]),
            mapping: nameless.text(&mappings[place]),
            build_id: nameless.text(&build_ids[place]),
            address: addresses[place].cast_unsigned(),
            is_file_offset: offsets[place],
            ..StoredFrame::default()
        };
        nameless.frame(frame)
    };
    Ok((0..mappings.len()).map(frame).collect())
}
