//! Tables of the files that a recording meets: reads cached ones, and builds and caches others for the next
//! recording, all on a thread of low priority.
//!
//! Invariant: results do not depend on tables, and nothing waits for them. A table has the same rules as its file's
//! call-frame information, so it only makes lookups faster. Work that is not finished at the end of the recording is
//! dropped.
//!
//! Elsewhere: building tables (`tables`), and the choice of files that get one (`ingest`).

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use plumb_process::{Elf, FileId, usage::be_nice};
use plumb_unwind::{Module, table::Table};

use crate::tables::{Source, TableCache};

/// Reads, builds and caches tables in the background.
#[derive(Debug)]
pub struct TableLoader {
    kept: Arc<TableCache>,
    /// Channel to the thread. The outer `None`: not started yet, because there was no work; the inner `None`: it
    /// could not be started.
    jobs: Option<Option<Sender<Job>>>,
    /// Channel from the thread; below, the thread's end of it.
    found: Receiver<Found>,
    finder: Sender<Found>,
    end: Arc<End>,
}

/// Signals the end of the recording to the thread.
#[derive(Debug, Default)]
struct End {
    is_there: AtomicBool,
    /// Held during a write.
    writing: Mutex<()>,
}

impl End {
    /// Runs `write`, unless the end has been reached. Returns whether it ran.
    fn before(&self, write: impl FnOnce()) -> bool {
        let _writing = self.writing.lock();
        let is_early = !self.is_there.load(Ordering::Acquire);
        if is_early {
            write();
        }
        is_early
    }

    /// Signals the end. Waits for a write in progress.
    fn reach(&self) {
        self.is_there.store(true, Ordering::Release);
        let _writing = self.writing.lock();
    }
}

/// A file and its table for callers.
type Found = (FileId, Table);

/// Work for the thread.
enum Job {
    /// Read or build the table for callers of the file with this build id.
    Find(FileId, Box<[u8]>, Box<Elf>, File),
    /// Cache the table of all rows of the file with this build id.
    Keep(Box<[u8]>, Table),
    /// Cache the entries derived from the code of the file with this build id.
    KeepEntries(Box<[u8]>, Vec<u8>),
}

impl TableLoader {
    /// Creates a loader that uses a cache.
    pub fn new(kept: TableCache) -> Self {
        let (finder, found) = mpsc::channel();
        Self { kept: Arc::new(kept), jobs: None, found, finder, end: Arc::default() }
    }

    /// Requests the table for callers of a file.
    pub fn want(&mut self, id: FileId, build_id: &[u8], elf: Elf, file: File) {
        self.give(Job::Find(id, build_id.into(), Box::new(elf), file));
    }

    /// Returns the tables that have become available since the last call.
    pub fn take(&self) -> impl Iterator<Item = Found> {
        self.found.try_iter()
    }

    /// Returns the table of all rows of a file, from the cache or built now. `None` if the file has none.
    pub fn all_rows(&mut self, build_id: Option<&[u8]>, module: &Module<Vec<u8>>) -> Option<Table> {
        let Some(build_id) = build_id else { return Table::of_all(module).ok() };
        if let Some(table) = self.kept.all_rows(build_id) {
            return Some(table);
        }
        let table = Table::of_all(module).ok()?;
        self.give(Job::Keep(build_id.into(), table.clone()));
        Some(table)
    }

    /// Returns the entries of call-frame information for a file's code that has none, from the cache or from `make`.
    pub(crate) fn entries(&mut self, build_id: &[u8], make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        if let Some(entries) = self.kept.entries(build_id) {
            return entries;
        }
        let entries = make();
        if !entries.is_empty() {
            self.give(Job::KeepEntries(build_id.into(), entries.clone()));
        }
        entries
    }

    fn give(&mut self, job: Job) {
        let jobs = self.jobs.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel();
            let (kept, done, end) = (Arc::clone(&self.kept), self.finder.clone(), Arc::clone(&self.end));
            let work = move || work(&kept, &jobs, &done, &end);
            thread::Builder::new().name("tables".into()).spawn(work).ok().map(|_| sender)
        });
        if let Some(jobs) = jobs {
            // If the thread has ended, so has its purpose.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for TableLoader {
    /// Waits only for a write in progress, which is short, so that no partial file is left.
    fn drop(&mut self) {
        self.end.reach();
    }
}

/// Body of the thread.
fn work(kept: &TableCache, jobs: &Receiver<Job>, done: &Sender<Found>, end: &End) {
    be_nice();
    for job in jobs {
        let goes_on = match job {
            Job::Keep(build_id, table) => end.before(|| kept.put_all_rows(&build_id, table)),
            Job::KeepEntries(build_id, entries) => end.before(|| kept.put_entries(&build_id, &entries)),
            Job::Find(id, build_id, elf, file) => match kept.get(&build_id) {
                Some(table) => done.send((id, table)).is_ok(),
                None => {
                    let Ok(table) = Source::of(*elf, file).of_calls() else { continue };
                    end.before(|| kept.put(&build_id, table.clone())) && done.send((id, table)).is_ok()
                }
            },
        };
        if !goes_on {
            break;
        }
    }
}

#[cfg(test)]
#[path = "loader_tests.rs"]
mod tests;
