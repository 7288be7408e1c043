//! Names that come after the profiles reach them all, and are asked of the file once it is there.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plumb_store::*;

const BUILD_ID: &str = "00ff00ff00ff00ff";

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Reads a file whose lines are an address and the functions there, outermost first.
struct Lines;

impl SymbolSource for Lines {
    fn resolve(
        &self,
        build_id: &str,
        _file: &str,
        addresses: &[FileAddress],
        read: &dyn Fn() -> Result<bytes::Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>> {
        assert_eq!(build_id, BUILD_ID);
        let text = String::from_utf8(read().unwrap().to_vec()).unwrap();
        let known: BTreeMap<u64, Vec<&str>> = text
            .lines()
            .map(|line| {
                let mut words = line.split(' ');
                (words.next().unwrap().parse().unwrap(), words.collect())
            })
            .collect();
        let call = |(place, name): (usize, &&str)| ResolvedCall {
            function: (*name).to_owned(),
            line: 7,
            inlined: place > 0,
            ..ResolvedCall::default()
        };
        let of =
            |at: &FileAddress| known.get(&at.address).into_iter().flatten().enumerate().map(call).collect();
        addresses.iter().map(of).collect()
    }
}

/// One sample: main, which has a name, then 16 and 32 in a file that has none.
fn sample(time: i64) -> Batch {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", "a")]));
    let (main, mapping) = (batch.dictionary.text("main"), batch.dictionary.text("/lib/libx.so"));
    let build_id = batch.dictionary.text(&BUILD_ID.to_uppercase());
    let main = batch.dictionary.frame(StoredFrame { function: main, ..StoredFrame::default() });
    let [outer, inner] = [16, 32].map(|address| {
        batch.dictionary.frame(StoredFrame { mapping, build_id, address, ..StoredFrame::default() })
    });
    let stack = batch.dictionary.stack([main, outer, inner]).unwrap();
    batch.push(StoredSample { series, time: Millis(time), stack, value: 1 });
    batch
}

fn path(store: &Store) -> Vec<String> {
    let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let selected = store.select(&Tenant::default(), all).unwrap();
    let tree = selected.call_tree().unwrap();
    let names: Vec<String> =
        tree.nodes.iter().map(|node| tree.names[node.name as usize].to_string()).collect();
    assert!(tree.nodes.iter().enumerate().all(|(place, node)| node.caller == (place as u32).checked_sub(1)));
    // The samples themselves say the same.
    let batch = selected.batch().unwrap();
    for sample in batch.samples() {
        let frames: Vec<_> = batch.dictionary.frames_of(sample.stack).collect();
        let shown = frames.iter().rev().map(|&key| {
            let frame = batch.dictionary.frame_at(key);
            match batch.dictionary.resolve(frame.function) {
                "" => format!("libx.so+{:#x}", frame.address),
                name => name.to_owned(),
            }
        });
        assert_eq!(shown.collect::<Vec<_>>(), names);
    }
    names
}

#[test]
fn names_reach_old_and_new_profiles() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        retention: Duration::from_secs(u32::MAX.into()),
        symbol_bytes: 100,
        ..StoreOptions::new(folder.path())
    };
    let open = || {
        let store = Store::open(options.clone()).unwrap();
        store.set_symbol_source(Arc::new(Lines));
        store
    };
    let (tenant, store) = (Tenant::default(), open());
    run(store.append(&tenant, sample(1000))).unwrap();
    run(store.flush()).unwrap();
    run(store.append(&tenant, sample(2000))).unwrap();
    assert_eq!(path(&store), ["main", "libx.so+0x10", "libx.so+0x20"]);
    assert!(!store.has_symbols(&tenant, BUILD_ID));
    assert_eq!(store.missing_symbols(&tenant), [BUILD_ID]);
    assert!(store.missing_symbols(&Tenant::new("b").unwrap()).is_empty());

    let folder = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = folder.path().join("sent");
        std::fs::write(&path, text).unwrap();
        path
    };
    store.put_symbols(&tenant, BUILD_ID, &file("32 work inlined")).unwrap();
    assert!(store.has_symbols(&tenant, BUILD_ID) && !store.has_symbols(&Tenant::new("b").unwrap(), BUILD_ID));
    assert_eq!(path(&store), ["main", "libx.so+0x10", "work", "inlined"]);
    assert!(store.missing_symbols(&tenant).is_empty());
    // A better file replaces it, also for what is compacted, and after a start.
    store.put_symbols(&tenant, BUILD_ID, &file("16 start\n32 work inlined")).unwrap();
    let names = ["main", "start", "work", "inlined"];
    assert_eq!(path(&store), names);
    run(store.compact()).unwrap();
    run(store.append(&tenant, sample(3000))).unwrap();
    assert_eq!(path(&store), names);
    drop(store);
    let store = open();
    assert_eq!(path(&store), names);

    for wrong in ["../../etc/passwd", "", "xyz", "0123456g"] {
        assert!(
            matches!(store.put_symbols(&tenant, wrong, &file("")), Err(StoreError::BuildId(_))),
            "{wrong}"
        );
    }
    let large = file(&"x".repeat(101));
    assert!(matches!(store.put_symbols(&tenant, "aaaa", &large), Err(StoreError::Full(_))));
    assert_eq!(path(&store), names, "what is refused removes nothing");
}

#[test]
fn symbols_that_were_not_needed_for_longest_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        retention: Duration::from_secs(u32::MAX.into()),
        symbol_bytes: 100,
        ..StoreOptions::new(folder.path())
    };
    let (tenant, store) = (Tenant::default(), Store::open(options.clone()).unwrap());
    store.set_symbol_source(Arc::new(Lines));
    let sent = folder.path().join("sent");
    let put = |store: &Store, build_id: &str, text: &str| {
        std::fs::write(&sent, text).unwrap();
        // Times are in milliseconds.
        std::thread::sleep(Duration::from_millis(3));
        assert!(store.put_symbols(&tenant, build_id, &sent).unwrap());
        std::thread::sleep(Duration::from_millis(3));
    };
    let kept = |store: &Store, ids: &[&str]| -> Vec<bool> {
        ids.iter().map(|id| store.has_symbols(&tenant, id)).collect()
    };
    run(store.append(&tenant, sample(1000))).unwrap();
    put(&store, BUILD_ID, "16 start\n32 work inlined");
    put(&store, "aaaa", &"x".repeat(40));
    // The first is needed again, and so the second is removed.
    assert_eq!(path(&store), ["main", "start", "work", "inlined"]);
    put(&store, "bbbb", &"x".repeat(40));
    assert_eq!(kept(&store, &[BUILD_ID, "aaaa", "bbbb"]), [true, false, true]);
    assert_eq!(path(&store), ["main", "start", "work", "inlined"]);
    drop(store);
    // A server that has just started knows only when they were stored.
    let store = Store::open(options).unwrap();
    store.set_symbol_source(Arc::new(Lines));
    put(&store, "cccc", &"x".repeat(40));
    assert_eq!(kept(&store, &[BUILD_ID, "bbbb", "cccc"]), [false, true, true]);
    assert_eq!(path(&store), ["main", "libx.so+0x10", "libx.so+0x20"]);
}
