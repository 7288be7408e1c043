//! perf.data made by hand: what perf of this machine does not write, and what nobody should.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Cursor;

use crate::support::Dice;
use linux_perf_event_reader::{EventRecord, RecordType};
use plumb_formats::perf_data::{PerfData, PerfDataError};

const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const FINISHED_ROUND: u32 = 68;
const COMPRESSED2: u32 = 83;

/// IDENTIFIER, IP, TID, TIME, PERIOD, CALLCHAIN, REGS_USER, STACK_USER of `perf_event_sample_format`.
const FORMAT: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 5 | 1 << 12 | 1 << 13;

/// A file being put together.
#[derive(Clone, Default)]
struct Made {
    big: bool,
    data: Vec<u8>,
    /// Sample formats of the events; event number `n` has the id `100 + n`.
    events: Vec<u64>,
    features: Vec<(u32, Vec<u8>)>,
}

impl Made {
    fn little(events: &[u64]) -> Self {
        Made { events: events.to_vec(), ..Made::default() }
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u64(&self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn framed(&self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        [&self.u32(kind)[..], &self.u16(misc), &self.u16(body.len() as u16 + 8), body].concat()
    }

    fn add(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Self {
        let record = self.framed(kind, misc, body);
        self.data.extend(record);
        self
    }

    fn words(&self, words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.u64(word)).collect()
    }

    /// The body of a sample in [`FORMAT`] with a callchain of two, one register and a stack of `stack` bytes.
    fn sample(&self, id: u64, time: u64, stack: usize) -> Vec<u8> {
        let mut body = self.words(&[id, 0x1000]);
        body.extend([self.u32(7), self.u32(8)].concat());
        body.extend(self.words(&[time, 5, 2, 0xffff_ffff_8000_0000, 0x1000, 2, 0x7777, stack as u64]));
        body.extend(vec![0xab; stack]);
        if stack > 0 {
            body.extend(self.u64(stack as u64));
        }
        body
    }

    fn attr(&self, sample_type: u64, flags: u64) -> Vec<u8> {
        let mut attr = vec![0; 128];
        attr[0..4].copy_from_slice(&self.u32(1)); // software: cpu-clock
        attr[4..8].copy_from_slice(&self.u32(128));
        attr[16..24].copy_from_slice(&self.u64(4000));
        attr[24..32].copy_from_slice(&self.u64(sample_type));
        attr[40..48].copy_from_slice(&self.u64(flags));
        attr[80..88].copy_from_slice(&self.u64(1)); // one register
        attr
    }

    fn finish(&self) -> Vec<u8> {
        let mut file = if self.big { b"2ELIFREP".to_vec() } else { b"PERFILE2".to_vec() };
        let attrs = 104 + 8 * self.events.len() as u64;
        let data = attrs + 144 * self.events.len() as u64;
        file.extend(self.words(&[104, 144]));
        file.extend(self.words(&[attrs, 144 * self.events.len() as u64, data, self.data.len() as u64, 0, 0]));
        let bits = self.features.iter().fold(0, |bits, (feature, _)| bits | 1 << feature);
        file.extend(self.words(&[bits, 0, 0, 0]));
        for number in 0..self.events.len() as u64 {
            file.extend(self.u64(100 + number));
        }
        for (number, &format) in self.events.iter().enumerate() {
            // SAMPLE_ID_ALL and by frequency.
            file.extend(self.attr(format, 1 << 18 | 1 << 10));
            file.extend(self.words(&[104 + 8 * number as u64, 8]));
        }
        file.extend(&self.data);
        let mut at = file.len() as u64 + 16 * self.features.len() as u64;
        for (_, bytes) in &self.features {
            file.extend(self.words(&[at, bytes.len() as u64]));
            at += bytes.len() as u64;
        }
        self.features.iter().for_each(|(_, bytes)| file.extend(bytes));
        file
    }
}

/// The records read: event and time of samples, damage, and the sum of all stack bytes.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    samples: Vec<(usize, u64)>,
    damaged: u64,
    stack_bytes: usize,
}

fn read(bytes: &[u8]) -> Result<Seen, PerfDataError> {
    Ok(seen(&mut PerfData::open(Cursor::new(bytes))?))
}

fn seen(input: &mut PerfData<Cursor<&[u8]>>) -> Seen {
    let mut seen = Seen::default();
    while let Some(record) = input.next_record() {
        assert!(record.event < record.events.len());
        if let Ok(EventRecord::Sample(sample)) = record.raw.parse() {
            seen.samples.push((record.event, sample.timestamp.unwrap_or(0)));
            seen.stack_bytes += sample.user_stack.map_or(0, |(stack, _)| stack.len());
        }
    }
    seen.damaged = input.loss().damaged_records;
    assert!(seen.damaged == 0 || !input.loss().warnings.is_empty(), "what is counted is also said");
    seen
}

/// Two rounds of two rings, the second ring late by a round, two events.
fn usual(big: bool) -> Made {
    let mut made = Made { big, ..Made::little(&[FORMAT, FORMAT]) };
    for (id, time) in [(100, 10), (101, 30), (100, 20), (0, 0), (100, 40), (101, 25), (0, 0), (100, 50)] {
        if id == 0 {
            made.add(FINISHED_ROUND, 0, &[]);
        } else {
            let body = made.sample(id, time, 24);
            made.add(SAMPLE, 2, &body);
        }
    }
    made
}

#[test]
fn samples_come_in_the_order_of_their_time() {
    let seen = read(&usual(false).finish()).unwrap();
    let expected = [(0, 10), (0, 20), (1, 25), (1, 30), (0, 40), (0, 50)];
    assert_eq!(seen, Seen { samples: expected.to_vec(), damaged: 0, stack_bytes: 6 * 24 });
}

#[test]
fn the_other_byte_order_reads_the_same() {
    assert_eq!(read(&usual(true).finish()).unwrap(), read(&usual(false).finish()).unwrap());
}

/// The files of a directory: a header without samples, and rings of samples with these times; event 0 has even times.
fn directory(big: bool, rings: &[&[u64]]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let made = Made { big, ..Made::little(&[FORMAT, FORMAT]) };
    let ring = |times: &&[u64]| {
        let mut made = made.clone();
        for &time in *times {
            let body = made.sample(100 + time % 2, time, 24);
            made.add(SAMPLE, 2, &body);
        }
        made.data
    };
    let mut header = made.clone();
    header.add(FINISHED_ROUND, 0, &[]);
    (header.finish(), rings.iter().map(ring).collect())
}

fn read_directory(header: &[u8], rings: &[Vec<u8>]) -> (Seen, Vec<String>) {
    let mut input = PerfData::open(Cursor::new(header)).unwrap();
    let name = |number| format!("data.{number}");
    let files =
        rings.iter().enumerate().map(|(number, ring)| (name(number), Cursor::new(&ring[..]))).collect();
    input.add_files(files).unwrap();
    let seen = seen(&mut input);
    (seen, input.loss().warnings.clone())
}

#[test]
fn rings_of_a_directory_are_merged_by_time() {
    // Each ring spans several rounds; in one an interrupt wrote before the record that it interrupted.
    let mut late: Vec<u64> = (0..300).map(|step| 11 + 20 * step).collect();
    late.swap(150, 151);
    let rings = [&(0..300).map(|step| 10 + 8 * step).collect::<Vec<_>>()[..], &[], &late, &[7]];
    let mut times = rings.concat();
    times.sort_unstable();
    for big in [false, true] {
        let (header, files) = directory(big, &rings);
        let (seen, warnings) = read_directory(&header, &files);
        let expected: Vec<_> = times.iter().map(|&time| (time as usize % 2, time)).collect();
        assert_eq!(seen.samples, expected);
        assert_eq!((seen.damaged, warnings.len()), (0, 0));
    }
}

#[test]
fn damage_in_one_ring_leaves_the_others_and_names_the_file() {
    let (header, mut files) = directory(false, &[&[10, 20, 30], &[15, 25]]);
    let length = files[0].len();
    files[0].truncate(length - 8);
    let (seen, warnings) = read_directory(&header, &files);
    assert_eq!(seen.samples, [(0, 10), (1, 15), (0, 20), (1, 25)]);
    assert_eq!(seen.damaged, 1);
    assert!(warnings[0].starts_with("data.0: at offset "), "{warnings:?}");
}

#[test]
fn newer_compressed_records_are_unpacked_across_their_borders() {
    let plain = usual(false);
    let packed = zstd::bulk::compress(&plain.data, 3).unwrap();
    let mut made = Made::little(&[FORMAT, FORMAT]);
    for chunk in packed.chunks(50) {
        let mut body = made.u64(chunk.len() as u64).to_vec();
        body.extend(chunk);
        body.resize(body.len().next_multiple_of(8), 0xee);
        made.add(COMPRESSED2, 0, &body);
    }
    let (mut unpacked, mut expected) = (read(&made.finish()).unwrap(), read(&plain.finish()).unwrap());
    // Rounds are not compressed in real files, so only the set is the same.
    unpacked.samples.sort();
    expected.samples.sort();
    assert_eq!(unpacked, expected);
}

#[test]
fn damaged_records_are_left_out_and_counted() {
    let mut made = usual(false);
    let unknown = made.sample(999, 60, 8);
    made.add(SAMPLE, 2, &unknown);
    let mut long_chain = made.sample(100, 61, 8);
    long_chain[40..48].fill(0xff);
    made.add(SAMPLE, 2, &long_chain);
    let mut mapping = vec![0; 80];
    mapping[32] = 21; // length of a build id
    made.add(MMAP2, 1 << 14, &mapping);
    let last = made.sample(101, 70, 8);
    made.add(SAMPLE, 2, &last);
    let seen = read(&made.finish()).unwrap();
    assert_eq!(seen.damaged, 3);
    assert_eq!(seen.samples.len(), 7);
    assert_eq!(seen.samples.last(), Some(&(1, 70)));
}

#[test]
fn a_record_of_size_zero_ends_the_reading() {
    let mut made = usual(false);
    made.data.extend([9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    let seen = read(&made.finish()).unwrap();
    assert_eq!((seen.samples.len(), seen.damaged), (6, 1));
}

#[test]
fn counter_values_branches_and_periods_do_not_hide_the_stack() {
    // READ and BRANCH_STACK too, no PERIOD: it is put in.
    let format = (FORMAT | 1 << 4 | 1 << 11) & !(1 << 8);
    let mut made = Made::little(&[format]);
    let mut body = made.words(&[100, 0x1000]);
    body.extend([made.u32(7), made.u32(8)].concat());
    body.extend(made.words(&[10]));
    body.extend(made.words(&[12345])); // value
    body.extend(made.words(&[1, 0x1000])); // callchain
    body.extend(made.words(&[2, 1, 2, 3, 4, 5, 6])); // branches
    body.extend(made.words(&[2, 0x7777])); // registers
    body.extend(made.words(&[8, 0xabab, 8])); // stack
    made.add(SAMPLE, 2, &body);
    let mut file = made.finish();
    let attr = 104 + 8;
    file[attr + 40..attr + 48].copy_from_slice(&(1_u64 << 18).to_le_bytes()); // a period, not a frequency
    let mut input = PerfData::open(Cursor::new(file)).unwrap();
    let record = input.next_record().unwrap();
    assert_eq!(record.raw.record_type, RecordType::SAMPLE);
    let EventRecord::Sample(sample) = record.raw.parse().unwrap() else { panic!() };
    assert_eq!(sample.period, Some(12345), "what the counter moved by");
    assert_eq!(sample.callchain.unwrap().len(), 1);
    assert_eq!(sample.user_regs.unwrap().get(0), Some(0x7777));
    assert_eq!(&*sample.user_stack.unwrap().0.as_slice(), 0xabab_u64.to_le_bytes());
}

#[test]
fn a_recorder_that_was_killed_leaves_its_records() {
    let mut file = usual(false).finish();
    file[48..56].fill(0); // the data's size is filled in at the end
    let mut input = PerfData::open(Cursor::new(&file)).unwrap();
    let mut count = 0;
    while input.next_record().is_some() {
        count += 1;
    }
    assert_eq!(count, 6);
    assert!(input.loss().warnings[0].contains("did not end properly"), "{:?}", input.loss());
}

#[test]
fn what_is_no_perf_data_is_refused_with_a_place() {
    assert!(matches!(read(b"PERFILE1aaaaaaaaaaaaa"), Err(PerfDataError::NotPerfData)));
    assert!(matches!(read(b""), Err(PerfDataError::NotPerfData)));
    let file = usual(false).finish();
    assert!(matches!(read(&file[..60]), Err(PerfDataError::Header { offset: 60, .. })));
    let mut no_events = file.clone();
    no_events[32..40].fill(0);
    let error = read(&no_events).unwrap_err();
    assert!(error.to_string().contains("at offset 120: no events"), "{error}");
}

#[test]
fn every_cut_ends_with_what_is_whole() {
    let file = usual(false).finish();
    let data = file.len() - usual(false).data.len();
    for length in data..file.len() {
        let seen = read(&file[..length]).unwrap();
        assert!(seen.samples.len() <= 6 && seen.damaged <= 1, "{length}: {seen:?}");
    }
}

/// Mutations of a file with everything in it: an error, counted damage or records, but no panic and no end of memory.
#[test]
fn hostile_files_never_panic() {
    let mut made = usual(false);
    let mut mapping = vec![1; 32];
    mapping.extend([20, 0, 0, 0]);
    mapping.extend([3; 20]);
    mapping.extend(b"\x05\0\0\0\x02\0\0\0/bin/true\0\0\0\0\0\0\0");
    mapping.extend(made.words(&[7, 45, 100]));
    made.add(MMAP2, 1 << 14, &mapping);
    let packed = zstd::bulk::compress(&made.data.clone(), 3).unwrap();
    made.add(81, 0, &packed);
    for kind in [64, 66, 67, 71, 78, 80] {
        made.add(kind, 0, &[kind as u8; 136]);
    }
    let text = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let mut names = [2_u32.to_le_bytes(), 128_u32.to_le_bytes()].concat();
    for id in [100_u64, 101] {
        names.extend(made.attr(FORMAT, 0));
        names.extend(1_u32.to_le_bytes());
        names.extend(text("cpu-clock:u\0\0\0\0\0"));
        names.extend(id.to_le_bytes());
    }
    let command = [&2_u32.to_le_bytes()[..], &text("perf"), &text("record")].concat();
    let build_id = [made.framed(0, 1, &[7; 28 + 16])].concat();
    made.features = vec![
        (2, build_id),
        (3, text("host")),
        (7, vec![1; 8]),
        (11, command),
        (12, names),
        (29, vec![2; 24]),
    ];
    let file = made.finish();
    assert_eq!(read(&file).unwrap().samples.len(), 12);
    let dice = &mut Dice(4);
    for _ in 0..4000 {
        let mut hostile = file.clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(hostile.len());
            match dice.below(3) {
                0 => hostile[at] = dice.next() as u8,
                1 => hostile[at] ^= 1 << dice.below(8),
                _ => {
                    let end = (at + 8).min(hostile.len());
                    hostile[at..end].fill(if dice.coin() { 0xff } else { 0 });
                }
            }
        }
        let _ = read(&hostile);
        // A valid header, and the two halves of the mutated file as rings.
        let at = dice.below(hostile.len());
        read_directory(&usual(false).finish(), &[hostile.split_off(at), hostile]);
    }
}
