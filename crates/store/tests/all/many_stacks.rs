//! Stores with more stacks than queries can share: a query takes what its own selection needs, and sums stay exact.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plumb_store::*;

/// A time in 2020, so that all data is old.
const BASE: i64 = 1_577_836_800_000;

/// A store whose queries have memory for this many calls.
fn open(folder: &Path, calls: usize) -> Store {
    let retention = Duration::from_secs(u32::MAX.into());
    Store::open(StoreOptions { retention, query_bytes: calls * 64, ..StoreOptions::new(folder) }).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A profile of a service: stacks of these names, each with its number plus one as the value.
fn profile(service: &str, time: i64, stacks: impl Iterator<Item = Vec<String>>) -> Batch {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", service)]));
    for (stack, value) in stacks.zip(1..) {
        let mut caller = None;
        for name in stack {
            let function = batch.dictionary.text(&name);
            let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
            caller = Some(batch.dictionary.call(caller, frame));
        }
        batch.push(StoredSample { series, time: Millis(BASE + time), stack: caller.unwrap(), value });
    }
    batch
}

/// Stacks of a service that no other has: each with as many calls of its own.
fn stacks(service: &str, numbers: std::ops::Range<usize>, own: usize) -> impl Iterator<Item = Vec<String>> {
    numbers.map(move |number| {
        let outer = [format!("{service}.main"), format!("{service}.f{}", number % 900)];
        outer.into_iter().chain((0..own).map(|level| format!("{service}.{number}.{level}"))).collect()
    })
}

fn select(store: &Store, service: &str) -> Selected {
    let selector = match service {
        "" => Selector::default(),
        service => Selector::parse(&format!("{{service_name=\"{service}\"}}")).unwrap(),
    };
    let all = Selection { selector, from: Millis(0), until: Millis(i64::MAX) };
    store.select(&Tenant::default(), all).unwrap()
}

/// The own value of each path of names.
fn paths<const SIDES: usize>(tree: &CallTree<SIDES>) -> BTreeMap<String, [i64; SIDES]> {
    let mut paths: Vec<String> = Vec::new();
    for node in &tree.nodes {
        let name = &tree.names[node.name as usize];
        paths.push(
            node.caller
                .map_or_else(|| name.to_string(), |caller| format!("{};{name}", paths[caller as usize])),
        );
    }
    let own = paths.into_iter().zip(&tree.nodes).map(|(path, node)| (path, node.own));
    own.filter(|(_, own)| *own != [0; SIDES]).collect()
}

#[test]
fn one_service_of_many_is_answered_by_its_own_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 2 << 20);
    let expected: BTreeMap<String, [i64; 1]> =
        stacks("small", 0..60, 4).zip(1..).map(|(stack, value)| (stack.join(";"), [2 * value])).collect();
    for part in 0..2 {
        for service in ["big", "huge"] {
            let numbers = part * 8_000..(part + 1) * 8_000;
            run(store.append(&Tenant::default(), profile(service, part as i64, stacks(service, numbers, 4))))
                .unwrap();
        }
        run(store.append(&Tenant::default(), profile("small", part as i64, stacks("small", 0..60, 4))))
            .unwrap();
        // One part is in a block, the other in memory.
        if part == 0 {
            run(store.flush()).unwrap();
        }
    }
    assert_eq!(paths(&select(&store, "small").call_tree().unwrap()), expected);
    let batch = select(&store, "small").batch().unwrap();
    assert_eq!(batch.samples().len(), 120);
    assert!(batch.dictionary.nodes().len() < 8_000, "stacks of others were read");
    // All stacks are shared from here on, and the answers are the same.
    let whole = select(&store, "").call_tree().unwrap();
    assert_eq!(whole.total()[0], 4 * 8_000 * 8_001 / 2 + 2 * 60 * 61 / 2);
    assert_eq!(paths(&select(&store, "small").call_tree().unwrap()), expected);
    let both = diff(&select(&store, "small"), &select(&store, "big"), usize::MAX).unwrap();
    assert_eq!(both.total()[0], 2 * 60 * 61 / 2);
    assert_eq!(both.total()[1], 2 * 8_000 * 8_001 / 2);
}

#[test]
fn more_calls_than_are_kept_are_summed_up_in_the_smallest() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 100_000);
    for part in 0..2 {
        let numbers = part * 9_000..(part + 1) * 9_000;
        run(store.append(&Tenant::default(), profile("all", part as i64, stacks("all", numbers, 6))))
            .unwrap();
        run(store.append(
            &Tenant::default(),
            profile(
                "one",
                part as i64,
                [vec!["one.main".into(), "one.hot".into()]].into_iter().cycle().take(1000),
            ),
        ))
        .unwrap();
        run(store.flush()).unwrap();
    }
    let tree = select(&store, "").call_tree().unwrap();
    assert_eq!(tree.total()[0], 2 * 9_000 * 9_001 / 2 + 2 * 1000 * 1001 / 2);
    assert!(tree.nodes.len() < 20_000, "{}", tree.nodes.len());
    let own = paths(&tree);
    assert_eq!(own["one.main;one.hot"], [2 * 1000 * 1001 / 2]);
    assert!(own.keys().any(|path| path.ends_with(";other")));
}

#[test]
fn a_stack_deeper_than_any_is_cut_and_stops_no_other_query() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 40_000);
    let deep = (0..60_000).map(|level| format!("f{}", level % 3)).collect();
    run(store.append(&Tenant::default(), profile("deep", 0, std::iter::once(deep)))).unwrap();
    run(store.append(&Tenant::default(), profile("good", 0, stacks("good", 0..10, 2)))).unwrap();
    run(store.flush()).unwrap();
    for service in ["good", "deep", "good"] {
        let tree = select(&store, service).call_tree().unwrap();
        assert_eq!(tree.total()[0], if service == "good" { 55 } else { 1 }, "{service}");
        assert!(tree.nodes.len() <= 16_384, "{service}: {}", tree.nodes.len());
    }
}

#[test]
fn the_heaviest_stacks_are_chosen_from_all_blocks_and_the_others_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    for part in 0..3 {
        let numbers = part * 500..(part + 1) * 500;
        run(store.append(&Tenant::default(), profile("all", part as i64, stacks("all", numbers, 3))))
            .unwrap();
        if part < 2 {
            run(store.flush()).unwrap();
        }
    }
    let of = |most: usize| {
        let heaviest = select(&store, "all").heaviest_stacks("", most).unwrap();
        let value: i64 = heaviest.batch.samples().iter().map(|sample| sample.value).sum();
        (heaviest.batch.samples().len(), value, heaviest.taken, heaviest.of)
    };
    // No series is of that type: all stacks weigh nothing.
    assert_eq!(of(usize::MAX), (1500, 3 * 500 * 501 / 2, 1500, 1500));
    assert_eq!((of(30).0, of(30).2, of(30).3), (30, 30, 1500));
}

#[test]
fn fewer_stacks_are_taken_if_their_frames_need_too_much_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 20_000);
    let kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    for part in 0..2 {
        let mut batch = profile("x", 0, std::iter::empty());
        let mut labels = Labels::new([("service_name", "deep")]);
        ProfileType::parse(kind).unwrap().label(&mut labels);
        let series = batch.series(labels);
        for (stack, value) in stacks("deep", part * 100..(part + 1) * 100, 200).zip(1..) {
            let mut caller = None;
            for name in stack {
                let function = batch.dictionary.text(&name);
                let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
                caller = Some(batch.dictionary.call(caller, frame));
            }
            let value = value + part as i64 * 1000;
            batch.push(StoredSample { series, time: Millis(BASE), stack: caller.unwrap(), value });
        }
        run(store.append(&Tenant::default(), batch)).unwrap();
        run(store.flush()).unwrap();
    }
    let heaviest = select(&store, "deep").heaviest_stacks(kind, usize::MAX).unwrap();
    assert_eq!(heaviest.of, 200);
    assert!((1..100).contains(&heaviest.taken), "{}", heaviest.taken);
    let least = heaviest.batch.samples().iter().map(|sample| sample.value).min().unwrap();
    assert_eq!(least, 1101 - heaviest.taken as i64);
}

#[test]
fn batches_that_come_faster_than_blocks_are_written_wait_and_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Duration::from_secs(u32::MAX.into());
    let options = StoreOptions { retention, head_bytes: 200_000, ..StoreOptions::new(folder.path()) };
    let store = Store::open(options).unwrap();
    // Each takes more than half of that.
    let batches: Vec<Batch> =
        (0..40).map(|part| profile("all", part, stacks("all", 0..600, 1 + part as usize % 3))).collect();
    let store = std::sync::Arc::new(store);
    let stored = run(async {
        let mut appends = tokio::task::JoinSet::new();
        for batch in batches {
            let store = store.clone();
            appends.spawn(async move { store.append(&Tenant::default(), batch).await });
        }
        appends.join_all().await
    });
    assert!(stored.into_iter().all(|stored| stored.is_ok()));
    run(store.flush()).unwrap();
    assert_eq!(select(&store, "all").call_tree().unwrap().total(), [40 * 600 * 601 / 2]);
}

#[test]
fn blocks_whose_stacks_have_no_room_together_are_merged_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Duration::from_secs(u32::MAX.into());
    let options = StoreOptions { retention, head_bytes: 4_000_000, ..StoreOptions::new(folder.path()) };
    let store = Store::open(options).unwrap();
    // Each block has some 3 MB of stacks and names; 6 MB may be merged.
    for part in 0..5 {
        let numbers = part * 100..(part + 1) * 100;
        run(store.append(&Tenant::default(), profile("all", part as i64, stacks("all", numbers, 200))))
            .unwrap();
        run(store.flush()).unwrap();
    }
    run(store.compact()).unwrap();
    run(store.compact()).unwrap();
    let blocks: u64 = store.status().tenants.iter().map(|(_, tenant)| tenant.blocks).sum();
    assert!((2..5).contains(&blocks), "{blocks}");
    assert_eq!(select(&store, "all").series_totals().unwrap()[0].1, 5 * 100 * 101 / 2);
    assert_eq!(select(&store, "all").call_tree().unwrap().total(), [5 * 100 * 101 / 2]);
}
