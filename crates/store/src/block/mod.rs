//! Blocks: samples of a tenant for some minutes, hours or a day, as Parquet tables in a directory of their own.

mod call_stacks;
#[cfg(test)]
mod hostile;
mod index;
mod limits;
mod meta;
mod order;
mod read;
mod row_ranges;
mod schema;
mod source;
mod stack_rows;
mod table_reader;
mod table_writer;
mod write;

pub(crate) use call_stacks::{CallStacks, FrameName};
pub(crate) use index::{BlockIndex, ProfileRow};
pub use meta::{BlockCounts, BlockMeta, FileMeta};
pub(crate) use meta::{VERSION, merged_segments};
pub(crate) use read::{Block, BlockCache, ByBytes, Cached, Part, StackNodes};
pub(crate) use row_ranges::RowRanges;
pub(crate) use source::{BatchSource, BlockSource};
pub(crate) use write::{EncodedBlock, encode};
