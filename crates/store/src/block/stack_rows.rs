//! Rows of a block's stacks, and which of its frames they have.

use parquet::errors::ParquetError;

use super::row_ranges::RowRanges;
use super::table_reader::TableReader;

/// Stacks of a block as lists of frames.
pub(super) struct StackRows {
    /// Numbers of the stacks.
    pub stacks: RowRanges,
    /// Numbers of all frames that they have.
    pub frames: RowRanges,
    /// Frames of all stacks, outermost first, as places among `frames`.
    pub elements: Vec<u32>,
    /// Number of frames of each stack, never 0.
    pub lengths: Vec<usize>,
    /// Number of the block's stacks.
    pub count: usize,
}

impl StackRows {
    /// Reads stacks from their table. `used`: numbers of those that are needed, ascending; `None`: all. `frames`: number of the block's frames.
    pub fn read(table: &TableReader, used: Option<&[i32]>, frames: usize) -> Result<Self, ParquetError> {
        let numbers = |used: &[i32]| RowRanges::covering(used.iter().filter_map(|&one| one.try_into().ok()));
        let stacks = used.map_or_else(|| table.all(), numbers);
        let (elements, lengths) = table.i32_lists(2, &stacks)?;
        if lengths.contains(&0) {
            return Err(ParquetError::General("a stack has no frame".into()));
        }
        let missing = || ParquetError::General("a stack has a frame that is not there".into());
        let mut elements: Vec<u32> = elements.into_iter().map(i32::cast_unsigned).collect();
        let mut places = vec![u32::MAX; frames];
        for &element in &elements {
            *places.get_mut(element as usize).ok_or_else(missing)? = 0;
        }
        let needed = places.iter().enumerate().filter(|&(_, &place)| place == 0).map(|(frame, _)| frame);
        let frames = RowRanges::covering(needed);
        for (place, frame) in frames.rows().enumerate() {
            places[frame] = place as u32;
        }
        elements.iter_mut().for_each(|element| *element = places[*element as usize]);
        Ok(Self { stacks, frames, elements, lengths, count: table.rows() })
    }

    /// The number and the frames of each stack.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let mut rest = &self.elements[..];
        self.stacks.rows().zip(&self.lengths).map(move |(number, &length)| {
            let (stack, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            (number, stack)
        })
    }
}
