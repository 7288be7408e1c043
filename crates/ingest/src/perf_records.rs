//! The bytes of records, decoded: perf_event_open(2), "MMAP layout".
//!
//! `linux-perf-event-reader` delivers records and their requested fields, but its own decoding is not
//! used: it drops the register ABI, which identifies 32-bit processes, mistakes group reads for single ones, and panics on
//! some damaged records. All lengths are checked here; data that does not fit gives `None`.

use std::ops::Range;

use linux_perf_event_reader::{Endianness, RecordParseInfo, RecordType, constants as perf};

use plumb_unwind::LinuxRegisters;

use crate::weights::Weight;

/// A damaged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

type Result<T> = std::result::Result<T, Damaged>;

/// Reads from the front of a slice.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], info: &RecordParseInfo) -> Self {
        Self { rest: bytes, big: info.endian == Endianness::BigEndian }
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let size = usize::try_from(size).map_err(|_| Damaged)?;
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(if self.big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
    }

    fn u64(&mut self) -> Result<u64> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(if self.big { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) })
    }

    fn words(&mut self, count: u64) -> Result<Words<'a>> {
        let bytes = self.take(count.checked_mul(8).ok_or(Damaged)?)?;
        Ok(Words { bytes, big: self.big })
    }

    /// Text up to a zero byte, or to the end.
    fn text(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&b| b == 0).unwrap_or(self.rest.len());
        &self.rest[..end]
    }
}

/// A list of words in the byte order of the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl Words<'_> {
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        let word = move |bytes: &[u8; 8]| {
            if self.big { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) }
        };
        self.bytes.as_chunks().0.iter().map(word)
    }
}

/// User registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers<'a> {
    /// `PERF_SAMPLE_REGS_ABI_*`: 1 for a 32-bit, 2 for a 64-bit process.
    pub(crate) abi: u64,
    /// Mask of registers, by perf's numbers.
    pub(crate) mask: u64,
    /// Values in the order of those numbers.
    pub(crate) values: Words<'a>,
}

/// User stack memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stack<'a> {
    /// Not requested.
    NotAsked,
    /// The kernel copied nothing, since the task has no memory any more, or no user memory.
    None,
    /// The copied bytes, from the stack pointer upwards.
    Copied {
        bytes: &'a [u8],
        /// Whether the full requested size was copied: there may be more.
        full: bool,
    },
}

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) ip: Option<u64>,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) period: u64,
    pub(crate) callchain: Option<Words<'a>>,
    /// Whether user registers were requested.
    pub(crate) asked_registers: bool,
    pub(crate) registers: Option<Registers<'a>>,
    pub(crate) stack: Stack<'a>,
    /// Whether it was taken in kernel mode.
    pub(crate) in_kernel: bool,
}

impl Registers<'_> {
    /// The tracked registers and their values, by DWARF number. `A`: the architecture of the sample.
    pub(crate) fn by_dwarf_number<A: LinuxRegisters>(&self) -> impl Iterator<Item = (u16, u64)> {
        let mut mask = self.mask;
        self.values.iter().filter_map(move |value| {
            let number = mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
            Some((A::of_perf(number)?, value))
        })
    }
}

impl<'a> Sample<'a> {
    /// `weight`: the source of its weight, unless it has a period.
    pub(crate) fn decode(bytes: &'a [u8], misc: u16, weight: Weight, info: &RecordParseInfo) -> Result<Self> {
        let mut r = Reader::new(bytes, info);
        let has = |bit: u64| info.sample_format.bits() & bit != 0;
        let optional = |bit: u64, r: &mut Reader<'a>| if has(bit) { r.u64().map(Some) } else { Ok(None) };
        optional(perf::PERF_SAMPLE_IDENTIFIER, &mut r)?;
        let ip = optional(perf::PERF_SAMPLE_IP, &mut r)?;
        let (pid, tid) = if has(perf::PERF_SAMPLE_TID) { (r.u32()?, r.u32()?) } else { (0, 0) };
        let time = optional(perf::PERF_SAMPLE_TIME, &mut r)?.unwrap_or(0);
        optional(perf::PERF_SAMPLE_ADDR, &mut r)?;
        optional(perf::PERF_SAMPLE_ID, &mut r)?;
        optional(perf::PERF_SAMPLE_STREAM_ID, &mut r)?;
        let cpu = if has(perf::PERF_SAMPLE_CPU) { (r.u32()?, r.u32()?).0 } else { 0 };
        let mut period = optional(perf::PERF_SAMPLE_PERIOD, &mut r)?;
        if has(perf::PERF_SAMPLE_READ) {
            skip_read(&mut r, info)?;
        }
        let mut callchain = None;
        if has(perf::PERF_SAMPLE_CALLCHAIN) {
            let count = r.u64()?;
            callchain = Some(r.words(count)?);
        }
        if has(perf::PERF_SAMPLE_RAW) {
            let size = r.u32()?;
            let said = r.take(size.into())?;
            if weight == Weight::Said {
                period = Some(Reader { rest: said, ..r }.u64()?);
            }
        }
        if has(perf::PERF_SAMPLE_BRANCH_STACK) {
            skip_branches(&mut r, info)?;
        }
        let asked_registers = has(perf::PERF_SAMPLE_REGS_USER);
        let registers = if asked_registers { read_registers(&mut r, info)? } else { None };
        let stack = if has(perf::PERF_SAMPLE_STACK_USER) { read_stack(&mut r)? } else { Stack::NotAsked };
        let in_kernel = misc & perf::PERF_RECORD_MISC_CPUMODE_MASK == perf::PERF_RECORD_MISC_KERNEL;
        let period = match weight {
            Weight::Each(each) => period.unwrap_or(each),
            Weight::Said => period.ok_or(Damaged)?,
        };
        // For a program without a kernel stack to report, it is the address it was called from.
        let ip = ip.filter(|_| weight != Weight::Said);
        Ok(Self { ip, pid, tid, time, cpu, period, callchain, asked_registers, registers, stack, in_kernel })
    }
}

impl Sample<'_> {
    /// Whether an exec, if one comes next, explains why the user stack can't be read.
    pub(crate) fn may_be_in_exec(&self) -> bool {
        self.in_kernel && matches!(self.stack, Stack::Copied { bytes: [], .. })
    }
}

/// `struct read_format`.
fn skip_read(r: &mut Reader<'_>, info: &RecordParseInfo) -> Result<()> {
    const TIMES: u64 = 1 | 2;
    const ID_AND_LOST: u64 = 4 | 16;
    const GROUP: u64 = 8;
    let format = info.read_format.bits();
    let times = u64::from((format & TIMES).count_ones());
    let each = 1 + u64::from((format & ID_AND_LOST).count_ones());
    if format & GROUP != 0 {
        let count = r.u64()?;
        r.words(count.checked_mul(each).and_then(|words| words.checked_add(times)).ok_or(Damaged)?)?;
    } else {
        r.words(times + each)?;
    }
    Ok(())
}

/// `struct perf_branch_stack`.
fn skip_branches(r: &mut Reader<'_>, info: &RecordParseInfo) -> Result<()> {
    const HW_INDEX: u64 = 1 << 17;
    let count = r.u64()?;
    let index = u64::from(info.branch_sample_format.bits() & HW_INDEX != 0);
    r.words(count.checked_mul(3).and_then(|words| words.checked_add(index)).ok_or(Damaged)?)?;
    Ok(())
}

fn read_registers<'a>(r: &mut Reader<'a>, info: &RecordParseInfo) -> Result<Option<Registers<'a>>> {
    let abi = r.u64()?;
    if abi == 0 {
        return Ok(None);
    }
    let values = r.words(info.sample_regs_user.count_ones().into())?;
    Ok(Some(Registers { abi, mask: info.sample_regs_user, values }))
}

fn read_stack<'a>(r: &mut Reader<'a>) -> Result<Stack<'a>> {
    let size = r.u64()?;
    if size == 0 {
        return Ok(Stack::None);
    }
    let bytes = r.take(size)?;
    let copied = usize::try_from(r.u64()?).map_err(|_| Damaged)?;
    let full = copied >= bytes.len();
    Ok(Stack::Copied { bytes: &bytes[..copied.min(bytes.len())], full })
}

/// A COMM record: a thread has a new name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comm<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: &'a [u8],
}

impl<'a> Comm<'a> {
    pub(crate) fn decode(mut r: Reader<'a>) -> Result<Self> {
        Ok(Self { pid: r.u32()?, tid: r.u32()?, name: r.text() })
    }
}

/// A FORK or EXIT record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) tid: u32,
    pub(crate) ptid: u32,
}

impl Task {
    pub(crate) fn decode(mut r: Reader<'_>) -> Result<Self> {
        Ok(Self { pid: r.u32()?, ppid: r.u32()?, tid: r.u32()?, ptid: r.u32()? })
    }
}

/// Identification of the file in an MMAP2 record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileMark<'a> {
    /// None (an MMAP record).
    Absent,
    Inode {
        major: u32,
        minor: u32,
        inode: u64,
        generation: u64,
    },
    BuildId(&'a [u8]),
}

/// An MMAP or MMAP2 record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mmap<'a> {
    /// `u32::MAX` for kernel memory.
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) executable: bool,
    pub(crate) mark: FileMark<'a>,
    pub(crate) path: &'a [u8],
}

impl<'a> Mmap<'a> {
    /// The addresses.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.length)
    }

    /// Whether it maps kernel memory.
    pub(crate) fn is_of_kernel(&self, misc: u16) -> bool {
        let mode = misc & perf::PERF_RECORD_MISC_CPUMODE_MASK;
        self.pid == u32::MAX || mode == perf::PERF_RECORD_MISC_KERNEL
    }

    /// An MMAP record.
    pub(crate) fn decode(mut r: Reader<'a>, misc: u16) -> Result<Self> {
        let executable = misc & perf::PERF_RECORD_MISC_MMAP_DATA == 0;
        let mut mmap = Self::begin(&mut r)?;
        mmap.executable = executable;
        mmap.path = r.text();
        Ok(mmap)
    }

    /// An MMAP2 record.
    pub(crate) fn decode2(mut r: Reader<'a>, misc: u16) -> Result<Self> {
        const PROT_EXEC: u32 = 4;
        let mut mmap = Self::begin(&mut r)?;
        if misc & perf::PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
            let field = r.take(24)?;
            let size = usize::from(field[0]);
            mmap.mark = FileMark::BuildId(field.get(4..4 + size).ok_or(Damaged)?);
        } else {
            let (major, minor) = (r.u32()?, r.u32()?);
            mmap.mark = FileMark::Inode { major, minor, inode: r.u64()?, generation: r.u64()? };
        }
        mmap.executable = r.u32()? & PROT_EXEC != 0;
        r.u32()?;
        mmap.path = r.text();
        Ok(mmap)
    }

    fn begin(r: &mut Reader<'a>) -> Result<Self> {
        let (pid, _tid) = (r.u32()?, r.u32()?);
        let (start, length, offset) = (r.u64()?, r.u64()?, r.u64()?);
        Ok(Self { pid, start, length, offset, executable: true, mark: FileMark::Absent, path: &[] })
    }
}

/// A CALLCHAIN_DEFERRED record: the user's part of callchains that have its cookie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred<'a> {
    pub(crate) cookie: u64,
    pub(crate) callchain: Words<'a>,
}

impl<'a> Deferred<'a> {
    /// Record type, for which linux-perf-event-reader has no name.
    pub(crate) const TYPE: RecordType = RecordType(22);

    pub(crate) fn decode(mut r: Reader<'a>) -> Result<Self> {
        let (cookie, count) = (r.u64()?, r.u64()?);
        Ok(Self { cookie, callchain: r.words(count)? })
    }
}

/// Number of lost records, from a LOST record.
pub(crate) fn lost(mut r: Reader<'_>) -> Result<u64> {
    r.u64()?;
    r.u64()
}

/// Number of lost samples, from a LOST_SAMPLES record.
pub(crate) fn lost_samples(mut r: Reader<'_>) -> Result<u64> {
    r.u64()
}
