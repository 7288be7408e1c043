//! Several servers with one bucket: each answers for all, one compacts, and one that dies loses no data.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use object_store::memory::InMemory;

use super::support::run;
use super::*;
use crate::{Labels, Millis, Selector, StoredFrame, StoredSample};

const BASE: i64 = 1_795_246_147_000;

fn options(folder: &Path) -> StoreOptions {
    let long = Duration::from_secs(u32::MAX.into());
    StoreOptions {
        retention: long,
        maintenance_interval: long,
        refresh_interval: long,
        ..StoreOptions::new(folder)
    }
}

fn open(folder: &Path, bucket: &Arc<InMemory>) -> Store {
    Store::open_with(options(folder), |_, _| Bucket::memory(bucket.clone())).unwrap()
}

fn append(store: &Store, number: i64) {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", "a")]));
    let function = batch.dictionary.text(&format!("f{}", number % 7));
    let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
    let stack = batch.dictionary.call(None, frame);
    batch.push(StoredSample { series, time: Millis(BASE + number), stack, value: 1 });
    run(store.append(&Tenant::default(), batch)).unwrap();
}

/// Numbers of the stored profiles. Each must be stored once.
fn numbers(store: &Store) -> Vec<i64> {
    store.refresh().unwrap();
    let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let selected = store.select(&Tenant::default(), all).unwrap();
    let (_, profiles) = selected.profiles().unwrap();
    assert!(profiles.iter().all(|one| one.total == 1), "a profile is there twice");
    assert_eq!(selected.call_tree().unwrap().total()[0], profiles.len() as i64);
    assert_eq!(selected.damaged(), 0);
    profiles.iter().map(|one| one.time.0 - BASE).collect()
}

#[test]
fn three_servers_answer_alike_and_one_may_die() {
    let bucket = Arc::new(InMemory::new());
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut stores: Vec<Option<Store>> = folders.iter().map(|one| Some(open(one.path(), &bucket))).collect();
    for number in 0..30 {
        let store = stores[number as usize % 3].as_ref().unwrap();
        append(store, number);
        if number % 10 > 6 {
            run(store.flush()).unwrap();
        }
    }
    for store in stores.iter().flatten() {
        run(store.flush()).unwrap();
    }
    let all: Vec<i64> = (0..30).collect();
    for store in stores.iter().flatten() {
        assert_eq!(numbers(store), all);
    }
    // Only the holder of the lease compacts; all see the result.
    for store in stores.iter().flatten() {
        run(store.compact()).unwrap();
    }
    let compactions: Vec<u64> = stores.iter().flatten().map(|store| store.status().compactions).collect();
    assert!(compactions[0] > 0 && compactions[1..] == [0, 0], "{compactions:?}");
    for store in stores.iter().flatten() {
        assert_eq!(numbers(store), all);
    }
    // One server dies with data that is only in its log; all that is left is a copy of the log.
    append(stores[1].as_ref().unwrap(), 30);
    let left = tempfile::tempdir().unwrap();
    for path in ["server", "log"].map(|part| folders[1].path().join(part)) {
        let files = if path.is_dir() {
            std::fs::read_dir(&path).unwrap().flatten().map(|one| one.path()).collect()
        } else {
            vec![path]
        };
        for file in files {
            let target = left.path().join(file.strip_prefix(folders[1].path()).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::copy(file, target).unwrap();
        }
    }
    std::mem::forget(stores[1].take());
    append(stores[2].as_ref().unwrap(), 31);
    run(stores[2].as_ref().unwrap().flush()).unwrap();
    let mut without: Vec<i64> = all.clone();
    without.push(31);
    assert_eq!(numbers(stores[0].as_ref().unwrap()), without);
    // The server comes back with the data that it had acknowledged; whoever compacts next has everything.
    let back = open(left.path(), &bucket);
    run(back.flush()).unwrap();
    let all: Vec<i64> = (0..32).collect();
    run(stores[0].as_ref().unwrap().compact()).unwrap();
    assert_eq!(numbers(stores[0].as_ref().unwrap()), all);
    assert_eq!(numbers(&back), all);
}

#[test]
fn what_is_in_no_block_yet_is_asked_of_its_server() {
    let bucket = Arc::new(InMemory::new());
    let folders: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let with_address = |number: usize| {
        let address = Some(format!("http://127.0.0.1:{number}"));
        let options = StoreOptions { address, ..options(folders[number].path()) };
        Store::open_with(options, |_, _| Bucket::memory(bucket.clone())).unwrap()
    };
    let (one, other) = (with_address(0), with_address(1));
    one.refresh().unwrap();
    let addresses = |store: &Store| store.peers().into_iter().map(|peer| peer.address).collect::<Vec<_>>();
    assert_eq!(
        (addresses(&one), addresses(&other)),
        (vec!["http://127.0.0.1:1".into()], vec!["http://127.0.0.1:0".into()])
    );

    append(&one, 0);
    append(&other, 1);
    run(other.flush()).unwrap();
    append(&other, 2);
    let all = || Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let tenant = Tenant::default();
    let total = |answer: &[bytes::Bytes]| {
        one.select_among(&tenant, all(), answer).unwrap().call_tree().unwrap().total()[0]
    };
    let answer: bytes::Bytes = other.unwritten(&tenant, all(), Cancellation::default()).unwrap().into();
    assert_eq!((total(&[]), total(std::slice::from_ref(&answer))), (2, 3));
    // Became a block after the answer: counts once.
    run(other.flush()).unwrap();
    assert_eq!(total(std::slice::from_ref(&answer)), 3);
    append(&other, 3);
    run(other.flush()).unwrap();
    run(one.compact()).unwrap();
    assert_eq!(total(&[answer]), 4);
    assert!(one.select_among(&tenant, all(), &["hostile".into()]).is_err());
}

#[test]
fn a_lease_is_taken_over_when_it_has_run_out() {
    let bucket = Bucket::memory(Arc::new(InMemory::new())).unwrap();
    let hold = |server: &str, now: i64| crate::lease::hold(&bucket, server, Millis(now)).unwrap();
    assert!(hold("a", 0));
    assert!(!hold("b", 100_000));
    assert!(hold("a", 100_000));
    assert!(!hold("b", 300_000));
    assert!(hold("b", 100_000 + 180_000 + 30_001));
    assert!(!hold("a", 320_000));
}
