//! Splits a ring's bytes into records: the end of each, its time, and its body in one piece.
//!
//! The bytes come from the kernel, yet lengths are checked as for untrusted input. Elsewhere: the ring's memory, the order
//! between rings, the meaning of records.

use linux_perf_event_reader::{RawData, RawEventRecord, RecordParseInfo, RecordType, get_record_timestamp};

/// Bytes of `struct perf_event_header`.
const HEADER: usize = 8;

/// A record at some offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    kind: RecordType,
    misc: u16,
    body: RawData<'a>,
}

impl<'a> Found<'a> {
    /// The record at offset `at` of `unread`. `None` at the end, and for an invalid header.
    pub fn at(unread: [&'a [u8]; 2], at: usize) -> Option<Self> {
        let mut rest = match unread {
            [first, second] if at < first.len() => RawData::Split(&first[at..], second),
            [first, second] => RawData::Single(second.get(at - first.len()..)?),
        };
        let mut header = [0; HEADER];
        rest.read_exact(&mut header).ok()?;
        let [k0, k1, k2, k3, m0, m1, s0, s1] = header;
        let body = usize::from(u16::from_ne_bytes([s0, s1])).checked_sub(HEADER)?;
        let body = match rest.split_off_prefix(body).ok()? {
            RawData::Split(whole, []) | RawData::Split([], whole) => RawData::Single(whole),
            other => other,
        };
        Some(Self {
            kind: RecordType(u32::from_ne_bytes([k0, k1, k2, k3])),
            misc: u16::from_ne_bytes([m0, m1]),
            body,
        })
    }

    /// Length in the ring, in bytes.
    pub fn len(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Time of the record; 0 if it has none.
    pub fn time(&self, info: &RecordParseInfo) -> u64 {
        get_record_timestamp::<byteorder::NativeEndian>(self.kind, self.body, info).unwrap_or(0)
    }

    /// The record for parsing, with its body in one piece: a body that wraps around the ring's end is copied to `scratch`.
    pub fn whole<'s>(self, info: &RecordParseInfo, scratch: &'s mut Vec<u8>) -> RawEventRecord<'s>
    where
        'a: 's,
    {
        let body = match self.body {
            RawData::Single(body) => body,
            RawData::Split(first, second) => {
                scratch.clear();
                scratch.extend_from_slice(first);
                scratch.extend_from_slice(second);
                scratch
            }
        };
        RawEventRecord::new(self.kind, self.misc, RawData::Single(body), *info)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attr::tests::parse_info;

    /// An EXIT record, which ends with its sample id: pid, tid, time, cpu.
    pub(crate) fn exit_record(time: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&4u32.to_ne_bytes());
        bytes.extend_from_slice(&0u16.to_ne_bytes());
        bytes.extend_from_slice(&56u16.to_ne_bytes());
        for word in [7u32, 1, 8, 1] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&time.to_ne_bytes());
        bytes.extend_from_slice(&[7, 0, 0, 0, 8, 0, 0, 0]);
        bytes.extend_from_slice(&time.to_ne_bytes());
        bytes.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn a_record_around_the_end_reads_like_one_in_one_piece() {
        let record = exit_record(1234);
        let info = parse_info();
        for split in 0..=record.len() {
            let (first, second) = record.split_at(split);
            let found = Found::at([first, second], 0).expect("a record is there");
            assert_eq!(found.len(), record.len());
            assert_eq!(found.time(&info), 1234);
            let mut scratch = Vec::new();
            let whole = found.whole(&info, &mut scratch);
            assert_eq!(whole.data.as_slice(), &record[8..]);
            assert_eq!(whole.common_data().expect("it has a sample id").cpu, Some(3));
        }
    }

    #[test]
    fn records_follow_each_other_around_the_end() {
        let bytes = [exit_record(1), exit_record(2), exit_record(3)].concat();
        for split in (0..bytes.len()).step_by(8) {
            let (first, second) = bytes.split_at(split);
            let times: Vec<u64> = (0..3)
                .filter_map(|i| Found::at([first, second], i * 56))
                .map(|found| found.time(&parse_info()))
                .collect();
            assert_eq!(times, [1, 2, 3]);
            assert!(Found::at([first, second], bytes.len()).is_none());
        }
    }

    #[test]
    fn impossible_headers_are_no_records() {
        let record = exit_record(1);
        assert!(Found::at([&record[..40], &[]], 0).is_none(), "the record is longer than what was written");
        assert!(Found::at([&record[..4], &[]], 0).is_none(), "the header is cut");
        let mut short = record.clone();
        short[6..8].copy_from_slice(&7u16.to_ne_bytes());
        assert!(Found::at([&short, &[]], 0).is_none(), "a record is no shorter than its header");
        assert!(Found::at([&record, &[]], 1000).is_none());
    }
}
