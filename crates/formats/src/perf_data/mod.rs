//! perf.data, the output of `perf record`: the header, and the records sorted by time.
//!
//! Records are returned as [`linux_perf_event_reader::RawEventRecord`], validated so that parsing them cannot panic, and
//! normalised (see `layout.rs`). Elsewhere: unwinding the stack copies, looking up file names.
//!
//! The layout is that of `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c` and
//! `tools/lib/perf/include/perf/event.h` in the kernel source.

mod attr;
mod bytes;
mod decoder;
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

pub use error::{Loss, PerfDataError};
pub use event::EventDesc;
pub use features::Header;
pub use read::{PerfData, Record};
