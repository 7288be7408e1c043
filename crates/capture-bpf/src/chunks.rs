//! The memory in which BPF programs find tables: chunks of some MiB, each table within one.
//!
//! The kernel allocates each chunk completely. If the limit is below a chunk's size, only part of it is used.
//!
//! Space is allocated first-fit. Released space may be reused only after a while, when no program can be reading it any
//! more: the caller ensures that.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::sys;
use crate::wire::{CHUNK_BYTES, MAX_CHUNKS};

const SIZE: usize = CHUNK_BYTES as usize;

/// The place of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub chunk: u32,
    pub bytes: Range<usize>,
}

/// All chunks.
pub(crate) struct Chunks {
    /// The map of maps.
    maps: OwnedFd,
    chunks: Vec<(OwnedFd, Free)>,
    /// Limit for tables in bytes.
    limit: usize,
}

/// Free space of a chunk: sorted ranges that don't touch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Free(Vec<Range<usize>>);

impl Free {
    fn of(size: usize) -> Self {
        Self(std::iter::once(0..size).collect())
    }

    fn take(&mut self, size: usize) -> Option<Range<usize>> {
        let index = self.0.iter().position(|range| range.len() >= size)?;
        let range = self.0.get_mut(index)?;
        let taken = range.start..range.start + size;
        range.start = taken.end;
        if range.start == range.end {
            self.0.remove(index);
        }
        Some(taken)
    }

    fn give_back(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let index = self.0.partition_point(|other| other.start < range.start);
        self.0.insert(index, range);
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(self.0.len());
        for range in self.0.drain(..) {
            match joined.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        self.0 = joined;
    }
}

impl Chunks {
    /// Without chunks, and with a limit of `limit` bytes for tables.
    pub fn new(maps: OwnedFd, limit: usize) -> Self {
        Self { maps, chunks: Vec::new(), limit: limit.min(SIZE * MAX_CHUNKS as usize) }
    }

    /// The largest piece of a table that can ever fit.
    pub fn largest(&self) -> usize {
        SIZE.min(self.limit)
    }

    /// Limit for tables in bytes.
    pub fn room(&self) -> usize {
        self.limit
    }

    /// Stores bytes. Returns `None` if no space is left.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<Option<Place>> {
        let size = bytes.len().next_multiple_of(64);
        if size > self.largest() {
            return Ok(None);
        }
        for (index, (map, free)) in self.chunks.iter_mut().enumerate() {
            if let Some(range) = free.take(size) {
                if let Err(error) = sys::write_mappable(map.as_fd(), SIZE, range.start, bytes) {
                    free.give_back(range);
                    return Err(error);
                }
                return Ok(Some(Place { chunk: index as u32, bytes: range }));
            }
        }
        // The last chunk may be used only in part, and be too small.
        let part = self.limit.saturating_sub(self.chunks.len() * SIZE).min(SIZE);
        if size > part {
            return Ok(None);
        }
        self.add(part)?;
        self.put(bytes)
    }

    /// Releases a place.
    pub fn give_back(&mut self, place: Place) {
        if let Some((_, free)) = self.chunks.get_mut(place.chunk as usize) {
            free.give_back(place.bytes);
        }
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * SIZE
    }

    fn add(&mut self, part: usize) -> io::Result<()> {
        let map = sys::create_mappable(CHUNK_BYTES)?;
        sys::update_u32(self.maps.as_fd(), self.chunks.len() as u32, map.as_raw_fd() as u32)?;
        self.chunks.push((map, Free::of(part)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_whole() {
        let mut free = Free::of(SIZE);
        let taken: Vec<_> = (1..=4).map(|size| free.take(64 * size).expect("there is room")).collect();
        assert!(taken.windows(2).all(|pair| pair[0].end == pair[1].start));
        for index in [2, 0, 3, 1] {
            free.give_back(taken[index].clone());
        }
        assert_eq!(free, Free::of(SIZE));
        assert_eq!(free.take(SIZE + 1), None);
        assert_eq!(free.take(SIZE), Some(0..SIZE));
        assert_eq!(free.take(64), None);
    }
}
