//! perf.data, what `perf record` writes: header facts, and its records in the order of their time.
//!
//! Records come out as [`linux_perf_event_reader::RawEventRecord`], checked so far that parsing them can't panic, and
//! normalised (see `layout.rs`). Unwinding the stack copies that they hold is not done here, nor are file names looked up.
//!
//! The layout is that of `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c` and
//! `tools/lib/perf/include/perf/event.h` in the kernel source.

mod attr;
mod bytes;
mod error;
mod event;
mod features;
mod header;
mod layout;
mod meta;
mod pipe;
mod read;
mod rounds;
mod stream;

pub use error::{Loss, ReadError};
pub use event::EventDesc;
pub use features::Header;
pub use read::{PerfData, Record};
