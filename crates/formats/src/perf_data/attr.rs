//! `struct perf_event_attr` as stored in files, including versions newer and older than this program knows.

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{Endianness, PerfEventAttr};

use super::bytes::Bytes;

/// Range of sizes of published versions of the structure (`PERF_ATTR_SIZE_VER0` and a generous end).
const SIZES: std::ops::RangeInclusive<usize> = 64..=4096;

/// Offsets of fields, from include/uapi/linux/perf_event.h.
const TYPE: usize = 0;
const SIZE: usize = 4;
const CONFIG: usize = 8;
const PERIOD: usize = 16;
const READ_FORMAT: usize = 32;
const FLAGS: usize = 40;
const BRANCH_SAMPLE_TYPE: usize = 72;

/// `attr.freq`: the period is a frequency.
const FLAG_FREQ: u64 = 1 << 10;
/// `attr.use_clockid`.
const FLAG_USE_CLOCKID: u64 = 1 << 25;

/// The structure, with the raw fields that [`PerfEventAttr`] drops or interprets.
#[derive(Clone, Debug)]
pub(super) struct Attr {
    pub parsed: PerfEventAttr,
    pub kind: u32,
    pub config: u64,
    /// The fixed period, if there is one.
    pub period: Option<u64>,
    pub branch_sample_type: u64,
    pub read_format: u64,
    /// Size in bytes, as stated in the structure.
    pub size: usize,
}

impl Attr {
    /// Parses the structure at the start of `bytes`, which may be longer. `None` if it is invalid.
    pub(super) fn parse(bytes: &[u8], endian: Endianness) -> Option<Self> {
        let u32_at = |at: usize| Bytes::new(bytes.get(at..)?, endian).u32();
        let u64_at = |at: usize| Bytes::new(bytes.get(at..)?, endian).u64();
        let size = match usize::try_from(u32_at(SIZE)?).ok()? {
            // perf before 2.6.33 left it at 0.
            0 => *SIZES.start(),
            size => size,
        };
        if !SIZES.contains(&size) {
            return None;
        }
        let mut own = bytes.get(..size)?.to_vec();
        put_u32(own.get_mut(SIZE..SIZE + 4)?, u32::try_from(size).ok()?, endian);
        let flags = u64_at(FLAGS)?;
        let parsed = parse(&own, endian).or_else(|| {
            // The event type or clock is newer than the parser: only its meaning is unknown, the records
            // have the same layout. So parse it again as an ordinary event.
            own[TYPE..TYPE + 4].fill(0);
            own[CONFIG..CONFIG + 8].fill(0);
            put_u64(&mut own[FLAGS..FLAGS + 8], flags & !FLAG_USE_CLOCKID, endian);
            parse(&own, endian)
        })?;
        Some(Attr {
            parsed,
            kind: u32_at(TYPE)?,
            config: u64_at(CONFIG)?,
            period: if flags & FLAG_FREQ == 0 { u64_at(PERIOD).filter(|&period| period > 0) } else { None },
            read_format: u64_at(READ_FORMAT)?,
            branch_sample_type: if size >= BRANCH_SAMPLE_TYPE + 8 { u64_at(BRANCH_SAMPLE_TYPE)? } else { 0 },
            size,
        })
    }
}

fn parse(bytes: &[u8], endian: Endianness) -> Option<PerfEventAttr> {
    let parsed = match endian {
        Endianness::LittleEndian => PerfEventAttr::parse::<_, LittleEndian>(bytes),
        Endianness::BigEndian => PerfEventAttr::parse::<_, BigEndian>(bytes),
    };
    parsed.ok().map(|(attr, _)| attr)
}

fn put_u32(to: &mut [u8], value: u32, endian: Endianness) {
    to.copy_from_slice(&match endian {
        Endianness::LittleEndian => value.to_le_bytes(),
        Endianness::BigEndian => value.to_be_bytes(),
    });
}

fn put_u64(to: &mut [u8], value: u64, endian: Endianness) {
    to.copy_from_slice(&match endian {
        Endianness::LittleEndian => value.to_le_bytes(),
        Endianness::BigEndian => value.to_be_bytes(),
    });
}
