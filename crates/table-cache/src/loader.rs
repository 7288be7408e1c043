//! Tables of the files that a recording meets: those that were kept are read, others are made and kept for the next
//! recording, all on a thread of low priority.
//!
//! Invariant: no result depends on it, and nothing waits for it. A table says what its file's call-frame information says,
//! so with a table rules are only found sooner. What is not done when the recording ends is left undone.
//!
//! Not here: tables themselves (`tables`), which files are worth one (`ingest`).

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use plumb_process::{Elf, FileId, usage::be_nice};
use plumb_unwind::{Module, table::Table};

use crate::tables::{Source, TableCache};

/// Reads, makes and keeps tables.
#[derive(Debug)]
pub struct TableLoader {
    kept: Arc<TableCache>,
    /// To the thread, which is there once it has something to do; `None` within if there can be none.
    jobs: Option<Option<Sender<Job>>>,
    /// From the thread.
    found: Receiver<Found>,
    finder: Sender<Found>,
    end: Arc<End>,
}

/// The end of the recording, for the thread.
#[derive(Debug, Default)]
struct End {
    is_there: AtomicBool,
    /// Held while something is written.
    writing: Mutex<()>,
}

impl End {
    /// Lets something be written, unless it is too late. Whether there is more to do.
    fn before(&self, write: impl FnOnce()) -> bool {
        let _writing = self.writing.lock();
        let is_early = !self.is_there.load(Ordering::Acquire);
        if is_early {
            write();
        }
        is_early
    }

    /// It is there. Waits for what is being written.
    fn reach(&self) {
        self.is_there.store(true, Ordering::Release);
        let _writing = self.writing.lock();
    }
}

/// The table for callers of a file.
type Found = (FileId, Table);

/// What there is to do.
enum Job {
    /// The table for callers of a file, with its build id.
    Find(FileId, Box<[u8]>, Box<Elf>, File),
    /// A table of all rows was made of the file with this build id.
    Keep(Box<[u8]>, Table),
    /// Entries were made of its code.
    KeepEntries(Box<[u8]>, Vec<u8>),
}

impl TableLoader {
    /// With what was kept before.
    pub fn new(kept: TableCache) -> Self {
        let (finder, found) = mpsc::channel();
        Self { kept: Arc::new(kept), jobs: None, found, finder, end: Arc::default() }
    }

    /// Asks for the table for callers of a file.
    pub fn want(&mut self, id: FileId, build_id: &[u8], elf: Elf, file: File) {
        self.give(Job::Find(id, build_id.into(), Box::new(elf), file));
    }

    /// The tables that were found since the last call.
    pub fn take(&self) -> impl Iterator<Item = Found> {
        self.found.try_iter()
    }

    /// The table of all rows of a file: as it was kept, or made now. `None` if it has none.
    pub fn all_rows(&mut self, build_id: Option<&[u8]>, module: &Module<Vec<u8>>) -> Option<Table> {
        let Some(build_id) = build_id else { return Table::of_all(module).ok() };
        if let Some(table) = self.kept.all_rows(build_id) {
            return Some(table);
        }
        let table = Table::of_all(module).ok()?;
        self.give(Job::Keep(build_id.into(), table.clone()));
        Some(table)
    }

    /// The entries of call-frame information for a file's code that has none: as they were kept, or made now.
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
            // If the thread is gone, so is what it was for.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for TableLoader {
    /// Waits for what is being written, which takes a moment, so that no half of a file stays; for nothing else.
    fn drop(&mut self) {
        self.end.reach();
    }
}

/// What the thread does.
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
