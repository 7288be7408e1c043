//! perf.data, what `perf record` writes: header facts, and its records in the order of their time.
//!
//! Records come out as [`linux_perf_event_reader::RawEventRecord`]; unwinding their stack copies is not done here.

mod read;

pub use read::{EventDesc, Header, Loss, PerfData, ReadError, Record};
