//! Segments: files that records are appended to, and that are read after a crash.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::record::{HEADER, MARK, Record, decode};
use crate::error::StoreError;

fn failed(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, action, source }
}

/// The file that records are appended to.
pub(crate) struct Segment {
    pub number: u64,
    path: PathBuf,
    file: File,
    /// Bytes of complete records.
    length: u64,
}

impl Segment {
    /// Creates a segment and flushes its directory entry to disk.
    pub fn create(folder: &Path, number: u64) -> Result<Self, StoreError> {
        let path = folder.join(format!("{number:012}.wal"));
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file.map_err(failed(&path, "create"))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder, "write"))?;
        Ok(Self { number, path, file, length: 0 })
    }

    /// Appends records and flushes them to disk. On failure, none of them is in the segment.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<(), StoreError> {
        let written = records.iter().try_for_each(|record| self.file.write_all(record));
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            // If this fails too, an incomplete record remains, which a reader skips.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.path, "write")(error));
        }
        self.length += records.iter().map(|record| record.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Bytes of complete records.
    pub fn len(&self) -> u64 {
        self.length
    }
}

/// Numbers and paths of the segments in a directory, oldest first.
pub(crate) fn segments(folder: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let entries = std::fs::read_dir(folder).map_err(failed(folder, "read"))?;
    let number = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".wal")?.parse().ok();
    let mut found: Vec<(u64, PathBuf)> =
        entries.flatten().filter_map(|entry| Some((number(&entry.path())?, entry.path()))).collect();
    found.sort();
    Ok(found)
}

/// Result of reading a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentReading {
    pub records: usize,
    /// Bytes that belong to no complete record.
    pub damaged: u64,
}

/// Reads a segment and passes each record to `take`.
pub(crate) fn read(path: &Path, mut take: impl FnMut(Record)) -> Result<SegmentReading, StoreError> {
    let bytes = std::fs::read(path).map_err(failed(path, "read"))?;
    let mut reading = SegmentReading::default();
    let mut at = 0;
    while at < bytes.len() {
        match decode(&bytes[at..]) {
            Some((record, length)) => {
                reading.records += 1;
                at += length;
                take(record);
            }
            None => {
                let next = next_mark(&bytes, at + 1);
                reading.damaged += (next - at) as u64;
                at = next;
            }
        }
    }
    Ok(reading)
}

/// Position of the next possible record.
fn next_mark(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.windows(MARK.len()).position(|window| window == MARK);
    found.map_or(bytes.len(), |place| from + place).min(bytes.len().max(HEADER))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::batch::{Batch, Millis, StoredSample};
    use crate::dictionary::StoredFrame;
    use crate::labels::Labels;
    use crate::wal::encode;

    fn batch(value: i64) -> Batch {
        let mut batch = Batch::default();
        let series = batch.series(Labels::new([("service_name", "a")]));
        let function = batch.dictionary.text("main");
        let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
        let stack = batch.dictionary.call(None, frame);
        batch.push(StoredSample { series, time: Millis(7), stack, value });
        batch
    }

    fn values(path: &Path) -> (Vec<i64>, u64) {
        let mut values = Vec::new();
        let reading = read(path, |record| values.push(record.batch.samples[0].value)).unwrap();
        assert_eq!(reading.records, values.len());
        (values, reading.damaged)
    }

    #[test]
    fn each_damage_costs_its_record_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = Segment::create(folder.path(), 1).unwrap();
        let records: Vec<Vec<u8>> = (1..=3).map(|value| encode("t", &batch(value)).unwrap()).collect();
        for record in &records {
            segment.append(&[record]).unwrap();
        }
        let (_, path) = segments(folder.path()).unwrap().remove(0);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!((values(&path), segment.len()), ((vec![1, 2, 3], 0), whole.len() as u64));
        for cut in 1..records[2].len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert_eq!(values(&path).0, [1, 2], "{cut} bytes are missing");
        }
        // Flips any byte of the middle record, including its length.
        for place in records[0].len()..records[0].len() + records[1].len() {
            let mut flipped = whole.clone();
            flipped[place] ^= 0x41;
            std::fs::write(&path, flipped).unwrap();
            let (left, damaged) = values(&path);
            assert_eq!((left, damaged), (vec![1, 3], records[1].len() as u64), "byte {place}");
        }
    }

    #[test]
    fn records_of_older_servers_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000000001.wal");
        let record = Record { tenant: "t".to_owned(), batch: batch(5) };
        let content = postcard::to_allocvec(&record).unwrap();
        let (length, checksum) = (u32::try_from(content.len()).unwrap(), crc32c::crc32c(&content));
        let bytes = [b"\xf1plb", &length.to_le_bytes()[..], &checksum.to_le_bytes(), &content].concat();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(values(&path), (vec![5], 0));
    }
}
