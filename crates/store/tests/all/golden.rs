//! Stores that earlier versions wrote are opened, and hold what was appended, to the last sample (`golden/README.md`).

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plumb_store::*;

/// Value by tenant, service and stack.
type Sums = BTreeMap<(String, String, String), i64>;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The lines of the list of profiles, in words.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

fn expected(text: &str) -> Sums {
    let mut sums = Sums::new();
    for line in lines(text) {
        let key = (line[1].to_owned(), line[2].to_owned(), line[4].to_owned());
        *sums.entry(key).or_default() += line[5].parse::<i64>().unwrap();
    }
    sums
}

fn select(store: &Store, tenant: &str, service: &str) -> Selected {
    let selector = Selector::parse(&format!("{{service_name=\"{service}\"}}")).unwrap();
    let selection = Selection { selector, from: Millis(0), until: Millis(i64::MAX) };
    store.select(&Tenant::new(tenant).unwrap(), selection).unwrap()
}

fn stored(store: &Store, text: &str) -> Sums {
    let mut sums = Sums::new();
    for (tenant, service) in expected(text).into_keys().map(|(tenant, service, _)| (tenant, service)) {
        let tree = select(store, &tenant, &service).call_tree().unwrap();
        let mut paths: Vec<String> = Vec::new();
        for node in &tree.nodes {
            let name = &tree.names[node.name as usize];
            let path =
                node.caller.map_or(name.to_string(), |caller| format!("{};{name}", paths[caller as usize]));
            if node.own[0] != 0 {
                sums.insert((tenant.clone(), service.clone(), path.clone()), node.own[0]);
            }
            paths.push(path);
        }
    }
    sums
}

/// Milliseconds of all profiles of a tenant's service, each with its value.
fn times(store: &Store, tenant: &str, service: &str) -> BTreeMap<i64, i64> {
    let (_, profiles) = select(store, tenant, service).profiles().unwrap();
    profiles.iter().map(|one| (one.time.0, one.total)).collect()
}

/// As [`times`], of the list of profiles.
fn times_of(text: &str, tenant: &str, service: &str) -> BTreeMap<i64, i64> {
    let mut times = BTreeMap::new();
    for line in lines(text).filter(|line| line[1..3] == [tenant, service]) {
        *times.entry(line[3].parse().unwrap()).or_default() += line[5].parse::<i64>().unwrap();
    }
    times
}

fn open(folder: &Path) -> Store {
    let retention = Duration::from_secs(u32::MAX.into());
    Store::open(StoreOptions { retention, ..StoreOptions::new(folder) }).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_store_of_an_earlier_version_has_all_profiles() {
    let text = std::fs::read_to_string(golden().join("profiles.txt")).unwrap();
    let stores = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let stores: Vec<PathBuf> =
        stores.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    assert!(!stores.is_empty(), "{stores:?}");
    for packed in stores {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = Command::new("tar").arg("-xzf").arg(&packed).arg("-C").arg(folder.path()).status();
        assert!(unpacked.unwrap().success());
        let version = packed.display();
        let of_shop = times_of(&text, "shop", "search");
        let store = open(folder.path());
        assert_eq!(store.status().recovered, 12, "{version}: those of the log alone");

        let sums = stored(&store, &text);
        assert_eq!(sums, expected(&text), "{version}");
        assert_eq!(times(&store, "shop", "search"), of_shop, "{version}");
        // As they are when old and new blocks have become one.
        run(store.flush()).unwrap();
        run(store.compact()).unwrap();
        drop(store);
        let store = open(folder.path());
        assert_eq!((stored(&store, &text), store.status().recovered), (sums, 0), "{version}, compacted");
        assert_eq!(store.status().damaged_blocks, 0, "{version}");
    }
}
