//! Spool: requests on disk that wait for the server, oldest first.
//!
//! A request is a file whose name holds its number, its [`SampleCount`] and its size in bytes, so that a dropped request is counted even if it cannot
//! be read. Numbers only grow, so the order does not depend on a clock.
//!
//! Invariant: all files together stay within the limit, and a file gets its name only after it was written to disk completely. Elsewhere: sending.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Request;
use crate::error::AgentError;
use crate::options::SpoolOptions;
use crate::totals::{Quantity, SampleCount};

/// Extension of incomplete files.
const PARTIAL: &str = ".part";
const ENDING: &str = ".otlp.gz";
/// File locked by the agent that uses the directory.
const LOCK: &str = "lock";

/// A spooled request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    number: u64,
    count: SampleCount,
    bytes: u64,
}

impl Waiting {
    fn name(&self) -> String {
        let Self { number, count: SampleCount { samples, weights }, bytes } = self;
        let weights = weights.map(|weight| format!("-{weight}")).concat();
        format!("{number:016}-{samples}{weights}-{bytes}{ENDING}")
    }

    fn parse(name: &str) -> Option<Self> {
        let numbers = name.strip_suffix(ENDING)?.split('-').map(|number| number.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let [number, samples, ref written @ .., bytes] = numbers[..] else { return None };
        let mut weights = [0; Quantity::COUNT];
        // Earlier agents wrote fewer quantities, but always CPU time.
        if written.is_empty() {
            return None;
        }
        weights.get_mut(..written.len())?.copy_from_slice(written);
        Some(Self { number, count: SampleCount { samples, weights }, bytes })
    }
}

/// The spooled requests of a directory.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
    max_bytes: u64,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    next: u64,
    _lock: File,
}

impl Spool {
    /// Opens the spool with the requests that an earlier agent left.
    pub fn open(options: &SpoolOptions) -> Result<Self, AgentError> {
        let directory = options.directory.clone();
        let failed = |error| AgentError::Spool(directory.clone(), error);
        fs::create_dir_all(&directory).map_err(failed)?;
        let lock = File::create(directory.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(AgentError::SpoolInUse(directory)),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut waiting = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed)?.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.ends_with(PARTIAL) {
                // Left incomplete by a writer that ended early.
                let _ = fs::remove_file(entry.path());
            } else if let Some(one) = Waiting::parse(name) {
                waiting.push(one);
            }
        }
        waiting.sort_by_key(|one| one.number);
        Ok(Self {
            next: waiting.last().map_or(0, |one| one.number.saturating_add(1)),
            bytes: waiting.iter().map(|one| one.bytes).sum(),
            waiting: waiting.into(),
            directory,
            max_bytes: options.max_bytes,
            _lock: lock,
        })
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of requests that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Samples in the requests that wait.
    pub fn count(&self) -> SampleCount {
        self.waiting.iter().fold(SampleCount::default(), |mut sum, one| {
            sum += one.count;
            sum
        })
    }

    /// Adds a request. Returns the samples dropped for it, oldest first. If the request is larger than the limit or the disk has no room for it, it
    /// is dropped itself, and the error is returned too.
    pub fn push(&mut self, request: &Request) -> (SampleCount, Option<io::Error>) {
        let bytes = request.body.len() as u64;
        let mut dropped = SampleCount::default();
        if bytes > self.max_bytes {
            let error = io::Error::new(io::ErrorKind::FileTooLarge, "the request is larger than the spool");
            return (request.count, Some(error));
        }
        while self.bytes + bytes > self.max_bytes {
            dropped += self.remove_oldest();
        }
        let new = Waiting { number: self.next, count: request.count, bytes };
        loop {
            match self.write(&new, &request.body) {
                Ok(()) => {
                    self.next += 1;
                    self.bytes += bytes;
                    self.waiting.push_back(new);
                    return (dropped, None);
                }
                // Drop older requests first.
                Err(error) if is_full(&error) && !self.is_empty() => dropped += self.remove_oldest(),
                Err(error) => {
                    dropped += request.count;
                    return (dropped, Some(error));
                }
            }
        }
    }

    fn write(&self, new: &Waiting, body: &[u8]) -> io::Result<()> {
        let path = self.path(new);
        let partial = self.directory.join(format!("{:016}{PARTIAL}", new.number));
        let written = (|| {
            let mut file = File::create(&partial)?;
            file.write_all(body)?;
            file.sync_data()?;
            fs::rename(&partial, &path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// Reads the oldest request. Fails if the file cannot be read or does not have the size in its name; [`Spool::remove_oldest`] then removes it.
    pub fn oldest(&self) -> Option<io::Result<Request>> {
        let oldest = self.waiting.front()?;
        Some(fs::read(self.path(oldest)).and_then(|body| {
            if body.len() as u64 != oldest.bytes {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is torn"));
            }
            Ok(Request { body, count: oldest.count })
        }))
    }

    /// Removes the oldest request and returns its samples.
    pub fn remove_oldest(&mut self) -> SampleCount {
        let Some(oldest) = self.waiting.pop_front() else { return SampleCount::default() };
        self.bytes = self.bytes.saturating_sub(oldest.bytes);
        // If the file cannot be removed, the next agent sends it again; nothing better can be done.
        let _ = fs::remove_file(self.path(&oldest));
        oldest.count
    }

    fn path(&self, waiting: &Waiting) -> PathBuf {
        self.directory.join(waiting.name())
    }

    /// The spool's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
