//! The write-ahead log: appended data that is in no block yet.
//!
//! A segment is a file of records; a record is a batch of a tenant with its length and checksum. A restarted server reads its segments again. A
//! damaged record affects no other: reading continues at the next complete one.

mod record;
mod segment;

pub(crate) use record::encode;
pub(crate) use segment::{Segment, read, segments};
