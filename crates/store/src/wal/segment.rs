//! Segments: files that records are appended to, and that are read after a crash.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::record::{HEADER, MARK, decode};
use super::replay::Replay;
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

/// Reads a segment.
pub(crate) fn read(path: &Path) -> Result<Replay, StoreError> {
    let bytes = std::fs::read(path).map_err(failed(path, "read"))?;
    let mut replay = Replay::default();
    let mut at = 0;
    while at < bytes.len() {
        match decode(&bytes[at..]) {
            Some(record) => {
                at += record.length;
                replay.take(record);
            }
            None => {
                let next = next_mark(&bytes, at + 1);
                replay.damaged += (next - at) as u64;
                at = next;
            }
        }
    }
    Ok(replay)
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
    use crate::head::Head;
    use crate::labels::Labels;
    use crate::wal::record::WholeBatch;

    /// A sample of a stack of `main` and one more function.
    fn batch(function: &str, value: i64) -> Batch {
        let mut batch = Batch::default();
        let series = batch.series(Labels::new([("service_name", "a")]));
        let frames = ["main", function].map(|name| {
            let function = batch.dictionary.text(name);
            batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() })
        });
        let stack = batch.dictionary.stack(frames).unwrap();
        batch.push(StoredSample { series, time: Millis(7 + value), stack, value });
        batch
    }

    /// Functions and values of the samples of a tenant, innermost function first.
    fn samples(batch: &Batch) -> Vec<(String, i64, i64)> {
        let name = |frame| batch.dictionary.resolve(batch.dictionary.frame_at(frame).function);
        let stack = |stack| batch.dictionary.frames_of(stack).map(name).collect::<Vec<_>>().join("<");
        batch.samples().iter().map(|sample| (stack(sample.stack), sample.time.0, sample.value)).collect()
    }

    fn expected(functions: &[(&str, i64)]) -> Vec<(String, i64, i64)> {
        functions.iter().map(|&(stack, value)| (stack.to_owned(), 7 + value, value)).collect()
    }

    /// A segment of three records, of which the last has the stack of the first, and the bytes of each.
    fn three_records(folder: &Path) -> (PathBuf, Vec<Vec<u8>>) {
        let mut segment = Segment::create(folder, 1).unwrap();
        let head = Head::default();
        let batches = [batch("a", 1), batch("b", 2), batch("a", 3)];
        let records: Vec<Vec<u8>> =
            batches.iter().map(|batch| head.append_logged("t", batch).unwrap()).collect();
        records.iter().for_each(|record| segment.append(&[record]).unwrap());
        let (_, path) = segments(folder).unwrap().remove(0);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), segment.len());
        (path, records)
    }

    #[test]
    fn records_become_the_head_that_they_were_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let (path, records) = three_records(folder.path());
        let replay = read(&path).unwrap();
        assert_eq!(samples(&replay.heads["t"]), expected(&[("a<main", 1), ("b<main", 2), ("a<main", 3)]));
        assert_eq!((replay.records, replay.damaged, replay.samples_without_series), (3, 0, 0));
        assert!(records[2].len() < records[1].len(), "a known stack is written again");
    }

    #[test]
    fn a_damaged_record_costs_its_samples_and_later_ones_what_only_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let (path, records) = three_records(folder.path());
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..records[2].len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let two = expected(&[("a<main", 1), ("b<main", 2)]);
            assert_eq!(samples(&read(&path).unwrap().heads["t"]), two, "{cut} bytes are missing");
        }
        let ends: Vec<usize> = (1..=3).map(|n| records[..n].iter().map(Vec::len).sum()).collect();
        // Flips any byte of the middle record, including its length.
        for place in ends[0]..ends[1] {
            let mut flipped = whole.clone();
            flipped[place] ^= 0x41;
            std::fs::write(&path, flipped).unwrap();
            let replay = read(&path).unwrap();
            assert_eq!(
                samples(&replay.heads["t"]),
                expected(&[("a<main", 1), ("a<main", 3)]),
                "byte {place}"
            );
            assert_eq!(replay.damaged, records[1].len() as u64, "byte {place}");
        }
        // The first record has the series, without which the others' samples belong to nothing.
        let mut flipped = whole;
        flipped[HEADER + 5] ^= 0x41;
        std::fs::write(&path, flipped).unwrap();
        let replay = read(&path).unwrap();
        assert_eq!((samples(&replay.heads["t"]), replay.samples_without_series), (Vec::new(), 2));
    }

    #[test]
    fn stacks_of_a_damaged_record_are_named_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = Segment::create(folder.path(), 1).unwrap();
        let head = Head::default();
        let batches = [batch("a", 1), batch("b", 2), batch("b", 3)];
        let records: Vec<Vec<u8>> =
            batches.iter().map(|batch| head.append_logged("t", batch).unwrap()).collect();
        segment.append(&[&records[0], &records[2]]).unwrap();
        let (_, path) = segments(folder.path()).unwrap().remove(0);
        let found = samples(&read(&path).unwrap().heads["t"]);
        assert_eq!(found, expected(&[("a<main", 1), ("[damaged log]", 3)]));
    }

    #[test]
    fn what_a_refused_batch_added_is_in_the_next_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = Segment::create(folder.path(), 1).unwrap();
        let head = Head::default();
        let first = head.append_logged("t", &batch("a", 1)).unwrap();
        let mark = head.mark();
        head.append_logged("t", &batch("b", 2)).unwrap();
        head.reset(mark);
        assert_eq!(samples(&head.read()), expected(&[("a<main", 1)]));
        let next = head.append_logged("t", &batch("b", 3)).unwrap();
        segment.append(&[&first, &next]).unwrap();
        let (_, path) = segments(folder.path()).unwrap().remove(0);
        let found = samples(&read(&path).unwrap().heads["t"]);
        assert_eq!(found, expected(&[("a<main", 1), ("b<main", 3)]));
    }

    #[test]
    fn records_of_older_servers_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000000001.wal");
        let record = WholeBatch { tenant: "t".to_owned(), batch: batch("a", 5) };
        let plain = postcard::to_allocvec(&record).unwrap();
        let length = u32::try_from(plain.len()).unwrap();
        let packed = [&length.to_le_bytes()[..], &zstd::bulk::compress(&plain, 1).unwrap()].concat();
        for (mark, content) in [(b"\xf1plb", plain), (b"\xf1plz", packed)] {
            let (length, checksum) = (u32::try_from(content.len()).unwrap(), crc32c::crc32c(&content));
            let bytes = [mark, &length.to_le_bytes()[..], &checksum.to_le_bytes(), &content].concat();
            std::fs::write(&path, bytes).unwrap();
            let replay = read(&path).unwrap();
            assert_eq!((samples(&replay.heads["t"]), replay.damaged), (expected(&[("a<main", 5)]), 0));
        }
    }
}
