//! Tests of [`super`], on the test program itself and with damaged files.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_process::{FileKey, FileOrigin, Files, RecordedFiles};

use super::*;

/// Temporary directory of a test, removed on drop.
struct Cache(PathBuf);

impl Cache {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plumb-shelf-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn shelf(&self) -> TableLoader {
        TableLoader::new(TableCache::open_in(&self.0))
    }

    /// Returns the cached files.
    fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.0.join("plumb/tables")).into_iter().flatten().flatten();
        files.map(|file| file.path()).collect()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn own() -> (File, Table) {
    let file = File::open("/proc/self/exe").unwrap();
    let source = Source::of(Elf::read(&file).unwrap(), file.try_clone().unwrap());
    (file, source.of_calls().unwrap().with_build_id(b"an id"))
}

fn id() -> FileId {
    Files::default().add(FileKey::of_path(b"/nonexistent"), &FileOrigin::Recorded(RecordedFiles::default()))
}

/// Returns the table that the loader finds for the file, or `None` after a timeout.
fn find(shelf: &mut TableLoader, file: &File) -> Option<Table> {
    shelf.want(id(), b"an id", Elf::read(file).unwrap_or_default(), file.try_clone().unwrap());
    let until = Instant::now() + Duration::from_secs(120);
    while Instant::now() < until {
        if let Some((_, table)) = shelf.take().next() {
            return Some(table.with_build_id(b"an id"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn a_table_is_made_once_and_read_from_then_on() {
    let cache = Cache::new("once");
    let (file, table) = own();
    assert_eq!(find(&mut cache.shelf(), &file).as_ref(), Some(&table));
    assert_eq!(cache.files().len(), 1, "and no temporary file");
    // This file has no data for a table, so the table must come from the cache.
    let empty = File::open("/dev/null").unwrap();
    assert_eq!(find(&mut cache.shelf(), &empty).as_ref(), Some(&table));
}

#[test]
fn a_damaged_table_is_made_again() {
    let cache = Cache::new("damaged");
    let (file, table) = own();
    find(&mut cache.shelf(), &file).expect("it was made");
    let [path] = &cache.files()[..] else { panic!("one table is kept") };
    let whole = std::fs::read(path).unwrap();
    let mut other_version = whole.clone();
    other_version[8] ^= 1;
    for bytes in [&whole[..whole.len() / 2], &other_version, b"", b"something else"] {
        std::fs::write(path, bytes).unwrap();
        assert_eq!(find(&mut cache.shelf(), &file).as_ref(), Some(&table));
        assert_eq!(std::fs::read(path).unwrap(), whole, "it was written again");
    }
}

#[test]
fn a_link_in_place_of_a_table_is_replaced_not_followed() {
    let cache = Cache::new("link");
    let (file, table) = own();
    find(&mut cache.shelf(), &file).expect("it was made");
    let [path] = &cache.files()[..] else { panic!("one table is kept") };
    let other = cache.0.join("other");
    std::fs::write(&other, "precious").unwrap();
    std::fs::remove_file(path).unwrap();
    std::os::unix::fs::symlink(&other, path).unwrap();
    assert_eq!(find(&mut cache.shelf(), &file).as_ref(), Some(&table));
    assert_eq!(std::fs::read(&other).unwrap(), b"precious");
    assert!(std::fs::symlink_metadata(path).unwrap().is_file());
}

#[test]
fn nothing_is_written_after_the_end() {
    let cache = Cache::new("end");
    let (file, table) = own();
    let shelf = cache.shelf();
    let (kept, end) = (Arc::clone(&shelf.kept), Arc::clone(&shelf.end));
    assert!(end.before(|| kept.put(b"early", table.clone())));
    drop(shelf);
    assert!(!end.before(|| kept.put(b"late", table.clone())));
    assert_eq!((kept.get(b"early").is_some(), kept.get(b"late")), (true, None));
    // The thread does not process its job either.
    let (jobs, list) = mpsc::channel();
    let job = || {
        Job::Find(
            id(),
            b"an id".as_slice().into(),
            Box::new(Elf::read(&file).unwrap()),
            file.try_clone().unwrap(),
        )
    };
    [job(), job()].into_iter().for_each(|job| jobs.send(job).unwrap());
    let (done, found) = mpsc::channel();
    work(&kept, &list, &done, &end);
    assert_eq!((found.try_iter().count(), list.try_iter().count()), (0, 1));
    assert_eq!(kept.get(b"an id"), None);
}

#[test]
fn all_rows_are_kept_beside_those_for_callers() {
    let cache = Cache::new("all");
    let file = File::open("/proc/self/exe").unwrap();
    let source = Source::of(Elf::read(&file).unwrap(), file);
    let mut shelf = cache.shelf();
    let made = shelf.all_rows(Some(b"an id"), source.module()).expect("the program has rules");
    assert_eq!(Table::of_all(source.module()), Ok(made.clone()));
    let until = Instant::now() + Duration::from_secs(120);
    // An existing file may still be incomplete.
    while TableCache::open_in(&cache.0).all_rows(b"an id").is_none() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    // This module has no rules, so the table must come from the cache.
    let nothing = Module::new(plumb_unwind::Sections::default());
    let read = cache.shelf().all_rows(Some(b"an id"), &nothing).expect("it was kept");
    assert_eq!(read, made.with_build_id(b"an id"));
    assert_eq!(TableCache::open_in(&cache.0).get(b"an id"), None, "it is another table");
}
