//! Sorts the records of one file by time.
//!
//! perf drains its ring buffers one by one, and writes a FINISHED_ROUND after each pass. Records added to a ring
//! after that are newer than everything that was read in the round *before*. So at the end of a round all
//! records up to the latest of the previous round are in their final order
//! (tools/perf/util/ordered-events.c).
//!
//! A file that holds one ring has no such marks. The kernel writes a ring in order, except that an interrupt
//! may write between the moment another record took its time and the moment it took its room: a few records at most. So
//! a round may end after any number of records larger than that.

use std::collections::VecDeque;

/// Memory limit of waiting records, in bytes; beyond it they are sorted as if a round had ended.
const LIMIT: usize = 256 << 20;
/// Number of buffers kept for reuse.
const SPARE: usize = 512;
/// Number of records in a round of a file that holds one ring: more than interrupts can nest.
const RING_RECORDS: usize = 32;

/// A waiting record.
pub(super) struct Pending<T> {
    time: u64,
    body: Vec<u8>,
    record: T,
}

/// Sorts records round by round.
pub(super) struct Rounds<T> {
    waiting: Vec<Pending<T>>,
    waiting_bytes: usize,
    ready: VecDeque<Pending<T>>,
    spare: Vec<Vec<u8>>,
    /// Latest time seen, and its value at the end of the last round.
    latest: u64,
    safe_until: u64,
    /// Memory limit of waiting records.
    limit: usize,
    /// Whether the file holds one ring, without the ends of rounds.
    is_ring: bool,
    /// Number of records added since the last round ended.
    added: usize,
}

impl<T> Rounds<T> {
    /// For a file with marks of its rounds.
    pub(super) fn new() -> Self {
        Rounds {
            waiting: Vec::new(),
            waiting_bytes: 0,
            ready: VecDeque::new(),
            spare: Vec::new(),
            latest: 0,
            safe_until: 0,
            limit: LIMIT,
            is_ring: false,
            added: 0,
        }
    }

    /// For one of `files` files that hold a ring each: at most twice [`RING_RECORDS`] records wait.
    pub(super) fn of_ring(files: usize) -> Self {
        Rounds { is_ring: true, limit: LIMIT / files.max(1), ..Rounds::new() }
    }

    /// Returns a buffer for a body.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a buffer.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < if self.is_ring { 1 } else { SPARE } {
            self.spare.push(buffer);
        }
    }

    /// Adds a record. One without a time sorts before all waiting ones.
    pub(super) fn add(&mut self, time: Option<u64>, record: T, body: Vec<u8>) {
        // perf treats both ends of the range as "no time".
        let time = time.filter(|&time| time != u64::MAX).unwrap_or(0);
        self.latest = self.latest.max(time);
        self.waiting_bytes += body.capacity() + size_of::<Pending<T>>();
        self.waiting.push(Pending { time, body, record });
        self.added += 1;
        if self.waiting_bytes > self.limit {
            self.release(u64::MAX);
        } else if self.is_ring && self.added >= RING_RECORDS {
            self.finish_round();
        }
    }

    /// Ends a round.
    pub(super) fn finish_round(&mut self) {
        self.release(self.safe_until);
        self.safe_until = self.latest;
        self.added = 0;
    }

    /// Ends the last round.
    pub(super) fn finish(&mut self) {
        self.release(u64::MAX);
    }

    /// Whether there is a record whose position is final.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the time of the record that [`Rounds::next`] returns.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.ready.front().map(|pending| pending.time)
    }

    /// Returns the next record whose position is final.
    pub(super) fn next(&mut self) -> Option<(T, Vec<u8>)> {
        self.ready.pop_front().map(|pending| (pending.record, pending.body))
    }

    fn release(&mut self, until: u64) {
        // A stable sort: records of the same time keep the file's order.
        self.waiting.sort_by_key(|pending| pending.time);
        let count = self.waiting.partition_point(|pending| pending.time <= until);
        self.ready.extend(self.waiting.drain(..count));
        self.waiting_bytes =
            self.waiting.iter().map(|pending| pending.body.capacity() + size_of::<Pending<T>>()).sum();
    }
}
