//! The layout of a SAMPLE record, and the changes needed before it is parsed.
//!
//! The parser of linux-perf-event-reader reads counter values (`PERF_SAMPLE_READ`) incorrectly, supports neither branch
//! counters nor a fixed period, and trusts the length of callchains and build ids. So samples are walked here first:
//! unsupported fields are removed (counter values are passed on as periods), a fixed period is inserted, and
//! records with invalid lengths are rejected.

use std::ops::Range;

use linux_perf_event_reader::{Endianness, RecordParseInfo, RecordType, SampleFormat};

use super::attr::Attr;
use super::bytes::Bytes;

/// `PERF_SAMPLE_BRANCH_HW_INDEX` and `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
/// `PERF_FORMAT_*`.
const FORMAT_TIMES: [u64; 2] = [1 << 0, 1 << 1];
const FORMAT_ID_AND_LOST: [u64; 2] = [1 << 2, 1 << 4];
const FORMAT_GROUP: u64 = 1 << 3;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: an MMAP2 holds a build id in place of the inode.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// Fields of 8 bytes before the period, in the order of the record.
const BEFORE_PERIOD: [SampleFormat; 8] = [
    SampleFormat::IDENTIFIER,
    SampleFormat::IP,
    SampleFormat::TID,
    SampleFormat::TIME,
    SampleFormat::ADDR,
    SampleFormat::ID,
    SampleFormat::STREAM_ID,
    SampleFormat::CPU,
];

/// Fields from the period to the stack copy. Later fields are not passed on.
const PERIOD_TO_STACK: [SampleFormat; 6] = [
    SampleFormat::PERIOD,
    SampleFormat::CALLCHAIN,
    SampleFormat::RAW,
    SampleFormat::BRANCH_STACK,
    SampleFormat::REGS_USER,
    SampleFormat::STACK_USER,
];

/// The layout of one event's records.
pub(super) struct Layout {
    /// For non-sample records, and for times and ids.
    pub info: RecordParseInfo,
    /// For samples after [`Layout::normalise`].
    pub sample_info: RecordParseInfo,
    /// The fixed period to insert.
    period: Option<u64>,
    read_format: u64,
    branch_sample_type: u64,
}

/// Largest number of events read together in one sample.
const COUNTERS: usize = 64;

/// The value of an event's counter at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// The event's id, if the sample has it.
    pub id: Option<u64>,
    pub value: u64,
}

/// Changes to a sample: bytes to insert and ranges to remove, in ascending order.
#[derive(Default)]
struct Edits {
    put: Option<(usize, u64)>,
    cut: [Option<Range<usize>>; 2],
}

impl Layout {
    pub(super) fn new(attr: &Attr, endian: Endianness) -> Self {
        let info = RecordParseInfo::new(&attr.parsed, endian);
        let format = info.sample_format;
        let mut kept = SampleFormat::empty();
        for field in BEFORE_PERIOD.into_iter().chain(PERIOD_TO_STACK) {
            kept |= format & field;
        }
        let period = if format.contains(SampleFormat::PERIOD) { None } else { attr.period };
        if period.is_some() {
            kept |= SampleFormat::PERIOD;
        }
        if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
            kept -= SampleFormat::BRANCH_STACK;
        }
        Layout {
            info,
            sample_info: RecordParseInfo { sample_format: kept, ..info },
            period,
            read_format: attr.read_format,
            branch_sample_type: attr.branch_sample_type,
        }
    }

    /// Returns the parse information for records of this type.
    pub(super) fn info_for(&self, kind: RecordType) -> RecordParseInfo {
        if kind == RecordType::SAMPLE { self.sample_info } else { self.info }
    }

    /// Makes a record's body suitable for the parser, or returns why that is impossible.
    pub(super) fn normalise(
        &self,
        kind: RecordType,
        misc: u16,
        body: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        match kind {
            RecordType::SAMPLE => {
                let edits = self.walk(body).ok_or("a sample that is shorter than what it should hold")?;
                edits.apply(body, self.info.endian);
                Ok(())
            }
            // pid, tid, address, length and offset take 32 bytes.
            RecordType::MMAP2 if misc & MISC_MMAP_BUILD_ID != 0 => match body.get(32) {
                Some(0..=20) => Ok(()),
                _ => Err("a mapping whose build id has an impossible length"),
            },
            _ => Ok(()),
        }
    }

    /// Whether samples have counter values: then the events of a group are sampled together.
    pub(super) fn has_counters(&self) -> bool {
        self.info.sample_format.contains(SampleFormat::READ)
    }

    /// Returns the counter values in a sample that was not normalised yet. `None` if it is too short.
    pub(super) fn counters(&self, body: &[u8]) -> Option<Vec<Counter>> {
        let mut bytes = Bytes::new(body, self.info.endian);
        bytes.skip(self.period_offset())?;
        if self.info.sample_format.contains(SampleFormat::PERIOD) {
            bytes.skip(8)?;
        }
        let [has_id, has_lost] = FORMAT_ID_AND_LOST.map(|flag| self.read_format & flag != 0);
        let times = FORMAT_TIMES.into_iter().filter(|flag| self.read_format & flag != 0).count();
        let grouped = self.read_format & FORMAT_GROUP != 0;
        let count = if grouped { usize::try_from(bytes.u64()?).ok()? } else { 1 };
        let mut counters = Vec::new();
        if grouped {
            bytes.skip(times * 8)?;
        }
        for _ in 0..count.min(COUNTERS) {
            let value = bytes.u64()?;
            if !grouped {
                bytes.skip(times * 8)?;
            }
            let id = if has_id { Some(bytes.u64()?) } else { None };
            if has_lost {
                bytes.skip(8)?;
            }
            counters.push(Counter { id, value });
        }
        Some(counters)
    }

    /// Overwrites the period of a normalised sample.
    pub(super) fn set_period(&self, body: &mut [u8], period: u64) {
        let at = self.period_offset();
        if self.sample_info.sample_format.contains(SampleFormat::PERIOD)
            && let Some(field) = body.get_mut(at..at + 8)
        {
            field.copy_from_slice(&to_bytes(period, self.info.endian));
        }
    }

    fn period_offset(&self) -> usize {
        BEFORE_PERIOD.into_iter().filter(|field| self.info.sample_format.contains(*field)).count() * 8
    }

    /// Walks a sample up to its stack copy and returns the edits. `None` if it is too short.
    fn walk(&self, body: &[u8]) -> Option<Edits> {
        let format = self.info.sample_format;
        let mut bytes = Bytes::new(body, self.info.endian);
        let at = |bytes: &Bytes<'_>| body.len() - bytes.rest().len();
        let mut edits = Edits::default();
        bytes.skip(self.period_offset())?;
        edits.put = self.period.map(|period| (at(&bytes), period));
        if format.contains(SampleFormat::PERIOD) {
            bytes.skip(8)?;
        }
        if format.contains(SampleFormat::READ) {
            let start = at(&bytes);
            self.skip_read(&mut bytes)?;
            edits.cut[0] = Some(start..at(&bytes));
        }
        if format.contains(SampleFormat::CALLCHAIN) {
            skip_words(&mut bytes, 1)?;
        }
        if format.contains(SampleFormat::RAW) {
            let size = bytes.length()?;
            bytes.skip(size)?;
        }
        if format.contains(SampleFormat::BRANCH_STACK) {
            let start = at(&bytes);
            self.skip_branches(&mut bytes)?;
            if self.branch_sample_type & BRANCH_COUNTERS != 0 {
                edits.cut[1] = Some(start..at(&bytes));
            }
        }
        if format.contains(SampleFormat::REGS_USER) && bytes.u64()? != 0 {
            bytes.skip(usize::from(self.info.user_regs_count) * 8)?;
        }
        if format.contains(SampleFormat::STACK_USER) {
            let size = usize::try_from(bytes.u64()?).ok()?;
            bytes.skip(size)?;
            if size > 0 {
                bytes.skip(8)?;
            }
        }
        Some(edits)
    }

    /// Skips counter values: `struct read_format` of include/uapi/linux/perf_event.h.
    fn skip_read(&self, bytes: &mut Bytes<'_>) -> Option<()> {
        let has = |flags: [u64; 2]| flags.into_iter().filter(|flag| self.read_format & flag != 0).count();
        let (times, words) = (has(FORMAT_TIMES), 1 + has(FORMAT_ID_AND_LOST));
        if self.read_format & FORMAT_GROUP == 0 {
            return bytes.skip((times + words) * 8);
        }
        let counters = usize::try_from(bytes.u64()?).ok()?;
        bytes.skip(times * 8)?;
        bytes.skip(counters.checked_mul(words * 8)?)
    }

    fn skip_branches(&self, bytes: &mut Bytes<'_>) -> Option<()> {
        let count = usize::try_from(bytes.u64()?).ok()?;
        if self.branch_sample_type & BRANCH_HW_INDEX != 0 {
            bytes.skip(8)?;
        }
        let words = if self.branch_sample_type & BRANCH_COUNTERS != 0 { 4 } else { 3 };
        bytes.skip(count.checked_mul(words * 8)?)
    }
}

/// Skips a count, and `each` words for each item.
fn skip_words(bytes: &mut Bytes<'_>, each: usize) -> Option<()> {
    let count = usize::try_from(bytes.u64()?).ok()?;
    bytes.skip(count.checked_mul(each * 8)?)
}

impl Edits {
    fn apply(self, body: &mut Vec<u8>, endian: Endianness) {
        for range in self.cut.into_iter().rev().flatten() {
            body.drain(range);
        }
        if let Some((at, value)) = self.put {
            body.splice(at..at, to_bytes(value, endian));
        }
    }
}

fn to_bytes(value: u64, endian: Endianness) -> [u8; 8] {
    match endian {
        Endianness::LittleEndian => value.to_le_bytes(),
        Endianness::BigEndian => value.to_be_bytes(),
    }
}
