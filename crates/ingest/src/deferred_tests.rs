//! User stacks that come in records of their own, made by hand: a kernel of Linux 6.19 writes them.

use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, ReadFormat, RecordIdParseInfo, RecordParseInfo, SampleFormat,
};
use plumb_profile::{FrameKind, Truncation};

use super::*;

const KERNEL_IP: u64 = 0xffff_ffff_8100_1000;
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;
const DEFERRED: u64 = -640_i64 as u64;

/// Records in one of the byte orders: samples with task, time and callchain; others end with task and time, unless they say nothing.
struct Made {
    is_big: bool,
    has_ids: bool,
    ingest: Ingest,
    event: EventId,
}

impl Made {
    fn new(is_big: bool, has_ids: bool) -> Self {
        let mut ingest = Ingest::new(Source::File, Filter::All);
        let event = ingest.add_event("cpu-clock", "ns");
        Made { is_big, has_ids, ingest, event }
    }

    fn words(&self, words: &[u64]) -> Vec<u8> {
        words
            .iter()
            .flat_map(|word| if self.is_big { word.to_be_bytes() } else { word.to_le_bytes() })
            .collect()
    }

    fn halves(&self, words: &[u32]) -> Vec<u8> {
        words
            .iter()
            .flat_map(|word| if self.is_big { word.to_be_bytes() } else { word.to_le_bytes() })
            .collect()
    }

    fn feed(&mut self, kind: RecordType, misc: u16, mut bytes: Vec<u8>, tid: u32) {
        if kind != RecordType::SAMPLE && self.has_ids {
            bytes.extend(self.halves(&[7, tid]));
            bytes.extend(self.words(&[50]));
        }
        let ids = RecordIdParseInfo {
            nonsample_record_id_offset_from_end: None,
            sample_record_id_offset_from_start: None,
        };
        let bits = perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_CALLCHAIN;
        let info = RecordParseInfo {
            endian: if self.is_big { Endianness::BigEndian } else { Endianness::LittleEndian },
            sample_format: SampleFormat::from_bits_retain(bits),
            branch_sample_format: BranchSampleFormat::empty(),
            read_format: ReadFormat::empty(),
            common_data_offset_from_end: self.has_ids.then_some(16),
            sample_regs_user: 0,
            user_regs_count: 0,
            sample_regs_intr: 0,
            intr_regs_count: 0,
            id_parse_info: ids,
            nonsample_record_time_offset_from_end: self.has_ids.then_some(8),
            sample_record_time_offset_from_start: Some(8),
        };
        self.ingest.record(self.event, &RawEventRecord::new(kind, misc, RawData::Single(&bytes), info));
    }

    fn map(&mut self) {
        let mut bytes = self.halves(&[7, 7]);
        bytes.extend(self.words(&[0x1000, 0x1000, 0]));
        bytes.extend(b"/no/such/app\0\0\0\0");
        self.feed(RecordType::MMAP, 2, bytes, 7);
    }

    fn sample(&mut self, tid: u32, callchain: &[u64]) {
        let mut bytes = self.halves(&[7, tid]);
        bytes.extend(self.words(&[40, callchain.len() as u64]));
        bytes.extend(self.words(callchain));
        self.feed(RecordType::SAMPLE, 1, bytes, tid);
    }

    fn deferred(&mut self, tid: u32, cookie: u64, callchain: &[u64]) {
        let mut bytes = self.words(&[cookie, callchain.len() as u64]);
        bytes.extend(self.words(callchain));
        self.feed(perf_records::Deferred::TYPE, 2, bytes, tid);
    }

    /// Stacks, each frame an address in its file or a reason, and the samples whose part never came.
    fn finish(self) -> (Vec<Vec<String>>, Statistics) {
        let (profile, statistics) = self.ingest.finish();
        let frame = |id| match profile.frames[id] {
            plumb_profile::Frame { kind: FrameKind::Truncation(cut), .. } => cut.name().to_owned(),
            frame => format!("{:x}", frame.address.0),
        };
        let stacks =
            profile.samples.iter().map(|sample| profile.frames_of(sample.stack).map(frame).collect());
        (stacks.collect(), statistics)
    }
}

/// Two samples of one entry into the kernel have one user stack; another thread with the same cookie doesn't get it.
#[test]
fn user_stacks_are_joined_by_thread_and_cookie_in_both_byte_orders() {
    for is_big in [false, true] {
        let mut made = Made::new(is_big, true);
        made.map();
        made.sample(7, &[KERNEL, KERNEL_IP, DEFERRED, 33]);
        made.sample(7, &[KERNEL, KERNEL_IP + 8, KERNEL_IP, DEFERRED, 33]);
        made.sample(8, &[KERNEL, KERNEL_IP, DEFERRED, 33]);
        made.deferred(7, 33, &[USER, 0x1010, 0x1020]);
        let (stacks, statistics) = made.finish();
        let kernel = format!("{KERNEL_IP:x}");
        let user = ["10", "20", Truncation::NoUserStack.name()].map(str::to_owned);
        assert_eq!(stacks[0], [&[kernel.clone()][..], &user].concat());
        assert_eq!(stacks[1], [&[format!("{:x}", KERNEL_IP + 8), kernel.clone()][..], &user].concat());
        assert_eq!(stacks[2], [kernel, Truncation::NoUserStack.name().into()]);
        assert_eq!((statistics.deferred_missing, statistics.samples, statistics.complete), (1, 3, 0));
        assert_eq!(statistics.cut.values().sum::<u64>(), 3);
    }
}

#[test]
fn records_that_name_no_thread_are_joined_by_the_cookie() {
    let mut made = Made::new(false, false);
    made.map();
    made.sample(7, &[KERNEL, KERNEL_IP, DEFERRED, 33]);
    made.deferred(0, 33, &[USER, 0x1010]);
    let (stacks, statistics) = made.finish();
    assert_eq!((&*stacks[0][1], statistics.deferred_missing), ("10", 0));
}

/// As `perf inject` and `perf script` merge them; and stacks whose samples are not there.
#[test]
fn merged_and_lone_user_stacks_change_no_other() {
    let mut made = Made::new(false, true);
    made.map();
    made.sample(7, &[KERNEL, KERNEL_IP, USER, 0x1010]);
    made.deferred(7, 34, &[USER, 0x1020]);
    made.sample(7, &[KERNEL, KERNEL_IP, DEFERRED]);
    made.deferred(7, 35, &[]);
    let (stacks, statistics) = made.finish();
    assert_eq!(stacks.iter().map(|stack| &*stack[1]).collect::<Vec<_>>(), ["10", "no-user-stack"]);
    assert_eq!((statistics.deferred_missing, statistics.damaged_records), (0, 0));
}

#[test]
fn a_record_that_is_too_short_is_damaged() {
    let mut made = Made::new(false, false);
    let bytes = made.words(&[33, 5, USER]);
    made.feed(perf_records::Deferred::TYPE, 2, bytes, 7);
    assert_eq!(made.finish().1.damaged_records, 1);
}
