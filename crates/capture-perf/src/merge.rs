//! Merges the records of all rings in order of time, and hands them out in place.
//!
//! Each ring is in order, except for a few microseconds. Across rings, a record that announces
//! something new (a mapping, a process) is complete in its ring before anything that follows from it
//! happens. So a reader that takes the time first, then looks at all rings, and hands out no record newer than
//! that time, sees causes before effects even when they are in different rings.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use linux_perf_event_reader::{RawEventRecord, RecordParseInfo};

use crate::records::Found;
use crate::ring::Ring;

/// Bytes that are read before they are released to the kernel.
const RELEASE_AT: usize = 64 << 10;
/// If handling the records takes longer than this, the rings are emptied into memory in between.
const PAUSE: Duration = Duration::from_millis(20);

/// A source of record bytes: a ring, or in tests a plain buffer.
pub(crate) trait Feed {
    /// Updates the bytes that [`Feed::unread`] returns.
    fn look(&mut self);
    /// The unread bytes, in two pieces.
    fn unread(&self) -> [&[u8]; 2];
    /// Releases the first `bytes` of the unread bytes.
    fn release(&mut self, bytes: usize);
    /// Makes room for new records, if possible: unread bytes stay, and more may follow them.
    fn make_room(&mut self) {}
}

impl Feed for Ring {
    fn look(&mut self) {
        Ring::look(self);
    }
    fn unread(&self) -> [&[u8]; 2] {
        Ring::unread(self)
    }
    fn release(&mut self, bytes: usize) {
        Ring::release(self, bytes);
    }
}

/// The merge of several rings.
#[derive(Debug)]
pub(crate) struct Merge<F> {
    feeds: Vec<F>,
    info: RecordParseInfo,
    scratch: Vec<u8>,
}

impl<F: Feed> Merge<F> {
    /// Merges `feeds`, whose records are all described by `info`.
    pub fn new(feeds: Vec<F>, info: RecordParseInfo) -> Self {
        Self { feeds, info, scratch: Vec::new() }
    }

    /// The sources of records.
    pub fn feeds(&mut self) -> impl Iterator<Item = &mut F> {
        self.feeds.iter_mut()
    }

    /// The sources of records, for inspection.
    pub fn all_feeds(&self) -> &[F] {
        &self.feeds
    }

    /// Number of records that are ready to be handed out.
    pub fn waiting(&mut self) -> u64 {
        let mut count = 0;
        for feed in &mut self.feeds {
            feed.look();
            let mut at = 0;
            while let Some(found) = Found::at(feed.unread(), at) {
                at += found.len();
                count += 1;
            }
        }
        count
    }

    /// Hands out every record that was present at the call and is not newer than `until`.
    pub fn drain(&mut self, until: u64, mut each: impl FnMut(&RawEventRecord<'_>)) {
        let mut consumed = vec![0; self.feeds.len()];
        let mut next = BinaryHeap::with_capacity(self.feeds.len());
        for (index, feed) in self.feeds.iter_mut().enumerate() {
            feed.look();
            if let Some(found) = Found::at(feed.unread(), 0) {
                next.push(Reverse((found.time(&self.info), index)));
            }
        }
        let mut looked = Instant::now();
        while let Some(Reverse((time, index))) = next.pop() {
            if time > until {
                break;
            }
            if looked.elapsed() >= PAUSE {
                looked = Instant::now();
                for (feed, read) in self.feeds.iter_mut().zip(&mut consumed) {
                    feed.release(std::mem::take(read));
                    feed.make_room();
                }
            }
            let feed = &mut self.feeds[index];
            let at = &mut consumed[index];
            if let Some(found) = Found::at(feed.unread(), *at) {
                *at += found.len();
                each(&found.whole(&self.info, &mut self.scratch));
            }
            if *at >= RELEASE_AT {
                feed.release(std::mem::take(at));
            }
            let mut following = Found::at(feed.unread(), *at);
            if following.is_none() && *at > 0 {
                // Overflowed records become visible block by block: releasing one loads the next.
                feed.release(std::mem::take(at));
                following = Found::at(feed.unread(), 0);
            }
            if let Some(found) = following {
                // A record that an interrupt overtook is handed out right after the record that overtook it.
                next.push(Reverse((found.time(&self.info).max(time), index)));
            }
        }
        for (feed, bytes) in self.feeds.iter_mut().zip(consumed) {
            if bytes > 0 {
                feed.release(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::tests::parse_info;
    use crate::records::tests::exit_record;

    /// A ring of plain memory, written by the test.
    struct Memory {
        bytes: Vec<u8>,
        written: usize,
        head: usize,
        tail: usize,
    }

    impl Memory {
        fn with(times: &[u64]) -> Self {
            let bytes: Vec<u8> = times.iter().flat_map(|&time| exit_record(time)).collect();
            Self { written: bytes.len(), bytes, head: 0, tail: 0 }
        }
    }

    impl Feed for Memory {
        fn look(&mut self) {
            self.head = self.written;
        }
        fn unread(&self) -> [&[u8]; 2] {
            // Split in the middle, as at a ring's end.
            let all = &self.bytes[self.tail..self.head];
            let (first, second) = all.split_at(all.len() / 3);
            [first, second]
        }
        fn release(&mut self, bytes: usize) {
            self.tail += bytes;
        }
    }

    fn times(merge: &mut Merge<Memory>, until: u64) -> Vec<u64> {
        let mut times = Vec::new();
        merge.drain(until, |record| times.push(record.timestamp().expect("records have a time")));
        times
    }

    #[test]
    fn rings_are_joined_in_time_order() {
        let feeds = vec![Memory::with(&[1, 4, 9]), Memory::with(&[]), Memory::with(&[2, 3, 10, 11])];
        let mut merge = Merge::new(feeds, parse_info());
        assert_eq!(times(&mut merge, u64::MAX), [1, 2, 3, 4, 9, 10, 11]);
        assert_eq!(times(&mut merge, u64::MAX), [0; 0], "nothing comes twice");
    }

    #[test]
    fn what_is_newer_than_the_limit_waits() {
        let mut merge = Merge::new(vec![Memory::with(&[1, 7]), Memory::with(&[2, 6, 8])], parse_info());
        assert_eq!(times(&mut merge, 6), [1, 2, 6]);
        assert_eq!(times(&mut merge, 6), [0; 0]);
        assert_eq!(times(&mut merge, u64::MAX), [7, 8]);
    }

    #[test]
    fn what_waits_is_counted_and_stays() {
        let mut merge = Merge::new(vec![Memory::with(&[1, 7]), Memory::with(&[2, 6, 8])], parse_info());
        assert_eq!(merge.waiting(), 5);
        assert_eq!(times(&mut merge, 6), [1, 2, 6]);
        assert_eq!(merge.waiting(), 2);
    }

    #[test]
    fn an_overtaken_record_is_not_lost() {
        let mut merge = Merge::new(vec![Memory::with(&[5, 4, 9]), Memory::with(&[6])], parse_info());
        assert_eq!(times(&mut merge, u64::MAX), [5, 4, 6, 9]);
    }

    #[test]
    fn room_is_given_back_while_reading() {
        let count = 10 * RELEASE_AT as u64 / 56;
        let mut merge = Merge::new(vec![Memory::with(&(1..=count).collect::<Vec<_>>())], parse_info());
        assert_eq!(times(&mut merge, u64::MAX).len() as u64, count);
        assert_eq!(merge.feeds[0].tail, merge.feeds[0].bytes.len());
    }
}
