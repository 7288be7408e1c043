//! A block of a version that did not sort stacks by service: it opens, answers the same, and can be merged.
//!
//! `blocks/not-by-service` was written by such a version. It has four profiles of each of two services, 15 seconds apart, with these stacks:
//! `main;poll` 1, `main;SERVICE.handle;shared.parse` 10, 11, 12 and 13, `main;SERVICE.handle` 100, `main;poll;SERVICE.wait` 1000.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plumb_store::*;

const ID: &str = "1795246147000-1795246192000-0-d32258be";

fn open(folder: &Path) -> Store {
    let target = folder.join("blocks/anonymous/blocks").join(ID);
    std::fs::create_dir_all(&target).unwrap();
    let block = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blocks/not-by-service");
    for file in std::fs::read_dir(block).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
    }
    let retention = Duration::from_secs(u32::MAX.into());
    Store::open(StoreOptions { retention, ..StoreOptions::new(folder) }).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn select(store: &Store, service: &str, from: i64, until: i64) -> Selected {
    let selector = Selector::default().with("service_name", service);
    let selection = Selection { selector, from: Millis(from), until: Millis(until) };
    store.select(&Tenant::new("anonymous").unwrap(), selection).unwrap()
}

/// Own value by stack, of the tree and of the samples.
fn stacks(selected: &Selected) -> [BTreeMap<String, i64>; 2] {
    let tree = selected.call_tree().unwrap();
    let (mut paths, mut of_tree): (Vec<String>, _) = (Vec::new(), BTreeMap::new());
    for call in &tree.nodes {
        let name = &tree.names[call.name as usize];
        let path =
            call.caller.map_or_else(|| name.to_string(), |one| format!("{};{name}", paths[one as usize]));
        if call.own[0] != 0 {
            of_tree.insert(path.clone(), call.own[0]);
        }
        paths.push(path);
    }
    let batch = selected.batch().unwrap();
    let mut of_samples = BTreeMap::new();
    for sample in batch.samples() {
        let name = |frame| batch.dictionary.resolve(batch.dictionary.frame_at(frame).function);
        let mut names: Vec<&str> = batch.dictionary.frames_of(sample.stack).map(name).collect();
        names.reverse();
        *of_samples.entry(names.join(";")).or_default() += sample.value;
    }
    [of_tree, of_samples]
}

fn expected(service: &str, profiles: i64, parsed: i64) -> BTreeMap<String, i64> {
    [
        ("main;poll".to_owned(), profiles),
        (format!("main;{service}.handle;shared.parse"), parsed),
        (format!("main;{service}.handle"), 100 * profiles),
        (format!("main;poll;{service}.wait"), 1000 * profiles),
    ]
    .into()
}

#[test]
fn answers_the_same_before_and_after_it_is_merged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (first, last) = (1_795_246_147_000, 1_795_246_192_000);
    for is_merged in [false, true] {
        if is_merged {
            run(store.compact()).unwrap();
            assert!(store.status().compactions > 0);
        }
        for service in ["checkout", "search"] {
            for found in stacks(&select(&store, service, first, last)) {
                assert_eq!(found, expected(service, 4, 10 + 11 + 12 + 13));
            }
            for found in stacks(&select(&store, service, first + 1, last - 1)) {
                assert_eq!(found, expected(service, 2, 11 + 12));
            }
        }
    }
}
