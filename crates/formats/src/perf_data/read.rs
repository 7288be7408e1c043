//! Opens a perf.data file and hands out its records.

use std::io::{Read, Seek};

use linux_perf_event_reader::{PerfEventAttr, RawEventRecord};
use plumb_profile::BuildId;

/// Why nothing of a perf.data file could be read. What goes wrong later is counted in [`Loss`] instead.
#[derive(Debug)]
pub enum ReadError {
    /// Not built yet.
    Unfinished,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("reading perf.data is not built yet")
    }
}

impl std::error::Error for ReadError {}

/// One event of the recording.
#[derive(Clone, Debug)]
pub struct EventDesc {
    /// Name as `perf` prints it, such as `cpu-clock:u`.
    pub name: String,
    /// What was asked of the kernel.
    pub attr: PerfEventAttr,
}

/// What the file says about its making. Anything unknown is empty, 0 or `None`.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Version of perf, such as `6.1.187`.
    pub perf_version: String,
    /// Command line of `perf record`, one string an argument.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine architecture.
    pub arch: String,
    /// Number of processors online.
    pub cpus: u32,
    /// Start of the recording in nanoseconds since 1970-01-01 UTC, and the sample clock's time then.
    pub clock: Option<(u64, u64)>,
    /// The events. Never empty.
    pub events: Vec<EventDesc>,
    /// Build ids by path, as far as perf stored them.
    pub build_ids: Vec<(String, BuildId)>,
}

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records that were left out because they are damaged or cut off.
    pub damaged_records: u64,
    /// What was wrong, with offsets, one sentence each.
    pub warnings: Vec<String>,
}

/// A record of the kernel.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Number of its event in [`Header::events`].
    pub event: usize,
    /// The record.
    pub raw: RawEventRecord<'a>,
}

/// An opened perf.data file.
pub struct PerfData<R> {
    header: Header,
    loss: Loss,
    _input: R,
}

impl<R: Read + Seek> PerfData<R> {
    /// Opens a perf.data file, in file mode or in pipe mode (`perf record -o -`).
    pub fn open(_input: R) -> Result<Self, ReadError> {
        Err(ReadError::Unfinished)
    }

    /// What the file says about its making. In pipe mode build ids come last, so ask again at the end.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next record in the order of time; `None` at the end. Damage ends or skips and is counted.
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        None
    }

    /// What could not be read so far.
    pub fn loss(&self) -> &Loss {
        &self.loss
    }
}
