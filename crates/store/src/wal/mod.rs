//! The write-ahead log: appended data that is in no block yet.
//!
//! A segment is a file of records; a record is a batch of a tenant with its length and checksum. A restarted server reads its segments again. A
//! damaged record costs its own samples; the names and stacks that only it had are missing from samples of later ones.

mod addition;
mod record;
mod replay;
mod segment;

pub(crate) use addition::{Logged, encode_addition};
pub(crate) use segment::{Segment, read, segments};
