//! The write-ahead log: what was appended and is in no block yet.
//!
//! A segment is a file of records; a record is a batch of a tenant with its length and checksum. A server that is killed reads its segments again. A
//! record that is damaged costs itself alone: reading goes on at the next one that is whole.

mod record;
mod segment;

pub(crate) use record::encode;
pub(crate) use segment::{Segment, read, segments};
