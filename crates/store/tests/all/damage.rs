//! Crashes and damaged files affect only the data that they hit, and are reported.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use plumb_store::*;

/// A time in 2020, so that all data is old.
const BASE: i64 = 1_577_836_800_000;

fn options(folder: &Path) -> StoreOptions {
    StoreOptions { retention: Duration::from_secs(u32::MAX.into()), ..StoreOptions::new(folder) }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A profile of one sample of value 1, at a timestamp of its own.
fn profile(number: i64) -> Batch {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", "a")]));
    let function = batch.dictionary.text(&format!("f{}", number % 50));
    let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
    let stack = batch.dictionary.call(None, frame);
    batch.push(StoredSample { series, time: Millis(BASE + number), stack, value: 1 });
    batch.request = Some(RequestKey::new(&Tenant::default(), &number.to_le_bytes()));
    batch
}

fn times(store: &Store) -> Vec<i64> {
    let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let selected = store.select(&Tenant::default(), all).unwrap();
    let (_, profiles) = selected.profiles().unwrap();
    assert!(profiles.iter().all(|one| one.total == 1), "a profile is there twice");
    let tree = selected.call_tree().unwrap();
    assert_eq!(tree.total()[0], profiles.len() as i64);
    profiles.iter().map(|one| one.time.0 - BASE).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Copies a store in its current state, as far as copying is atomic: the log first, because data that leaves it is in a block by then; then the list
/// of stored requests once more, because blocks may hold requests that arrived after the log was copied.
fn copy(from: &Path, to: &Path) {
    for part in ["server", "log", "blocks", "log/taken"] {
        let paths = if from.join(part).is_dir() { files(&from.join(part)) } else { vec![from.join(part)] };
        for path in paths {
            let target = to.join(path.strip_prefix(from).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            // The file may have been removed in the meantime.
            let _ = std::fs::copy(&path, &target);
        }
    }
}

#[test]
fn what_was_acknowledged_survives_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    let acknowledged = AtomicI64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..400 {
                run(store.append(&Tenant::default(), profile(number))).unwrap();
                acknowledged.store(number + 1, Ordering::SeqCst);
                match number % 40 {
                    20 => run(store.flush()).unwrap(),
                    39 => run(store.compact()).unwrap(),
                    _ => {}
                }
            }
        });
        let mut seen = 0;
        while seen < 400 {
            seen = acknowledged.load(Ordering::SeqCst);
            let copied = tempfile::tempdir().unwrap();
            copy(folder.path(), copied.path());
            let again = Store::open(options(copied.path())).unwrap();
            let found = times(&again);
            assert!(found.len() as i64 >= seen, "{} of {seen} are there", found.len());
            assert!(found.iter().zip(0..).all(|(&time, number)| time == number), "{found:?}");
            // A client that got no answer sends again: now, after a second start, and to a server that has only the copy.
            found.iter().for_each(|&number| run(again.append(&Tenant::default(), profile(number))).unwrap());
            assert_eq!(times(&again), found);
            assert_eq!(again.status().repeated, found.len() as u64);
            drop(again);
            let again = Store::open(options(copied.path())).unwrap();
            found.iter().for_each(|&number| run(again.append(&Tenant::default(), profile(number))).unwrap());
            assert_eq!(times(&again), found);
        }
    });
}

#[test]
fn a_flipped_bit_in_a_block_is_found_and_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    for block in 0..2 {
        for number in 0..10 {
            run(store.append(&Tenant::default(), profile(block * 100 + number))).unwrap();
        }
        run(store.flush()).unwrap();
    }
    drop(store);
    let all = files(&folder.path().join("blocks"));
    assert_eq!(all.len(), 12, "{all:?}");
    let mut found = 0;
    for path in all.iter().filter(|path| path.extension().is_some_and(|one| one == "parquet")) {
        let whole = std::fs::read(path).unwrap();
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        std::fs::write(path, flipped).unwrap();
        let store = Store::open(options(folder.path())).unwrap();
        let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
        let selected = store.select(&Tenant::default(), all).unwrap();
        selected.batch().unwrap();
        assert_eq!((selected.damaged(), store.status().damaged_blocks), (1, 1), "{}", path.display());
        assert_eq!(times(&store).len(), 10);
        std::fs::write(path, whole).unwrap();
        found += 1;
    }
    assert_eq!(found, 10);
}

#[test]
fn an_unfinished_block_goes_and_a_finished_one_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    for number in 0..10 {
        run(store.append(&Tenant::default(), profile(number))).unwrap();
    }
    // Put the log back as it was before the block was written, as if the server died between the two steps.
    let log = files(&folder.path().join("log")).remove(0);
    let segment = std::fs::read(&log).unwrap();
    run(store.flush()).unwrap();
    drop(store);
    std::fs::write(&log, &segment).unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    assert_eq!(times(&store).len(), 10);
    drop(store);
    // A block without its last file does not exist.
    let json =
        files(&folder.path().join("blocks")).into_iter().find(|path| path.ends_with("block.json")).unwrap();
    std::fs::remove_file(&json).unwrap();
    std::fs::write(&log, &segment).unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    assert_eq!(times(&store).len(), 10);
    assert!(!json.parent().unwrap().exists());
}

#[test]
fn old_blocks_and_too_many_bytes_go() {
    let folder = tempfile::tempdir().unwrap();
    let keep = |options: StoreOptions| {
        let store = Store::open(options).unwrap();
        run(store.compact()).unwrap();
        times(&store).len()
    };
    let store = Store::open(options(folder.path())).unwrap();
    // Two days apart.
    for day in 0..2 {
        run(store.append(&Tenant::default(), profile(day * 2 * 86_400_000))).unwrap();
        run(store.flush()).unwrap();
    }
    drop(store);
    assert_eq!(keep(options(folder.path())), 2);
    // Replaced blocks are removed when the store is opened again.
    assert_eq!(keep(options(folder.path())), 2);
    let bytes: u64 = files(&folder.path().join("blocks"))
        .iter()
        .filter(|path| path.extension().is_some_and(|one| one == "parquet"))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert_eq!(keep(StoreOptions { max_bytes: bytes - 1, ..options(folder.path()) }), 1);
    assert_eq!(keep(StoreOptions { retention: Duration::from_secs(1), ..options(folder.path()) }), 0);
}

#[test]
fn a_block_that_cannot_be_opened_is_missing_from_answers_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    for number in 0..3 {
        run(store.append(&Tenant::default(), profile(number * 10))).unwrap();
        run(store.flush()).unwrap();
    }
    drop(store);
    let metas: Vec<PathBuf> = files(&folder.path().join("blocks"))
        .into_iter()
        .filter(|path| path.ends_with("block.json"))
        .collect();
    let whole: Vec<String> = metas.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    std::fs::write(&metas[0], &whole[0][..whole[0].len() / 2]).unwrap();
    std::fs::write(&metas[2], whole[2].replacen("\"version\":1", "\"version\":99", 1)).unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    assert_eq!(times(&store), [10]);
    let span = |offset: i64| (Millis(BASE + offset), Millis(BASE + offset));
    assert_eq!(store.missing(&Tenant::default()), [span(0), span(20)]);
    // Neither is merged or removed.
    run(store.compact()).unwrap();
    drop(store);
    std::fs::write(&metas[0], &whole[0]).unwrap();
    std::fs::write(&metas[2], &whole[2]).unwrap();
    let store = Store::open(options(folder.path())).unwrap();
    assert_eq!(times(&store), [0, 10, 20]);
    assert_eq!(store.missing(&Tenant::default()), []);
}
