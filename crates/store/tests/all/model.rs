//! Whatever is appended in whatever order, before or after a block, a compaction or a restart, answers are the sums of the appended samples.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use plumb_fixtures::random::Random;
use plumb_store::*;

/// A sample as the test knows it: service, time, stack (root first), value.
type Known = (String, i64, Vec<String>, i64);

const SERVICES: usize = 4;
const BASE: i64 = 1_795_246_147_000;

fn options(folder: &Path) -> StoreOptions {
    // The samples are old, and must not be removed for their age.
    StoreOptions { retention: Duration::from_secs(u32::MAX.into()), ..StoreOptions::new(folder) }
}

fn open(folder: &Path) -> Store {
    Store::open(options(folder)).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn labels(service: &str) -> Labels {
    Labels::new([("service_name", service), ("node", &format!("node-{}", service.len()))])
}

fn batch(samples: &[Known]) -> Batch {
    let mut batch = Batch::default();
    for (service, time, names, value) in samples {
        let series = batch.series(labels(service));
        let mut stack = None;
        for (depth, name) in names.iter().enumerate() {
            let (function, file) = (batch.dictionary.text(name), batch.dictionary.text("a.c"));
            let line = depth as u32 + 1;
            let frame = StoredFrame { function, file, line, ..StoredFrame::default() };
            let frame = batch.dictionary.frame(frame);
            stack = Some(batch.dictionary.call(stack, frame));
        }
        batch.push(StoredSample { series, time: Millis(*time), stack: stack.unwrap(), value: *value });
    }
    batch
}

fn drawn(random: &mut Random, count: usize) -> Vec<Known> {
    (0..count)
        .map(|_| {
            let service = format!("service-{}", "x".repeat(random.below(SERVICES)));
            let time = BASE + 15_000 * random.below(400) as i64;
            let depth = 1 + random.below(6);
            let stack = (0..depth).map(|_| format!("f{}", random.below(5))).collect();
            (service, time, stack, 1 + random.below(1000) as i64)
        })
        .collect()
}

fn select(store: &Store, selector: &str, from: i64, until: i64) -> Selected {
    let selector = Selector::parse(selector).unwrap();
    let selection = Selection { selector, from: Millis(from), until: Millis(until) };
    store.select(&Tenant::default(), selection).unwrap()
}

/// Value by path of callers.
fn paths(tree: &CallTree<1>) -> BTreeMap<Vec<String>, i64> {
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut paths = BTreeMap::new();
    for node in &tree.nodes {
        let mut path = node.caller.map(|caller| names[caller as usize].clone()).unwrap_or_default();
        path.push(tree.names[node.name as usize].to_string());
        names.push(path.clone());
        if node.own[0] != 0 {
            paths.insert(path, node.own[0]);
        }
    }
    paths
}

/// Compares all answers with the known samples.
fn check(store: &Store, known: &[Known], selector: &str, from: i64, until: i64, what: &str) {
    let parsed = Selector::parse(selector).unwrap();
    let is_in = |one: &&Known| parsed.matches(&labels(&one.0)) && (from..=until).contains(&one.1);
    let (mut series, mut profiles, mut spent) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for (service, time, stack, value) in known.iter().filter(is_in) {
        series.insert(labels(service));
        *profiles.entry((labels(service), *time)).or_insert(0) += value;
        *spent.entry(stack.clone()).or_insert(0) += value;
    }
    let selected = select(store, selector, from, until);
    assert_eq!(selected.series().unwrap(), series.iter().cloned().collect::<Vec<_>>(), "{what}");
    let (found, totals) = selected.profiles().unwrap();
    let totals: BTreeMap<_, _> =
        totals.iter().map(|one| ((found[one.series].clone(), one.time.0), one.total)).collect();
    assert_eq!(totals, profiles, "{what}");
    let mut sums: BTreeMap<Labels, i64> = BTreeMap::new();
    profiles.iter().for_each(|((labels, _), value)| *sums.entry(labels.clone()).or_default() += value);
    assert_eq!(selected.series_totals().unwrap().into_iter().collect::<BTreeMap<_, _>>(), sums, "{what}");
    let tree = selected.call_tree().unwrap();
    assert_eq!(paths(&tree), spent, "{what}");
    assert_eq!(tree.total()[0], spent.values().sum::<i64>(), "{what}");
    let batch = selected.batch().unwrap();
    let mut again = BTreeMap::new();
    for sample in batch.samples() {
        let frames: Vec<StoredFrame> =
            batch.dictionary.frames_of(sample.stack).map(|key| batch.dictionary.frame_at(key)).collect();
        let mut names: Vec<String> = Vec::new();
        for (depth, frame) in frames.iter().rev().enumerate() {
            assert_eq!((frame.line, batch.dictionary.resolve(frame.file)), (depth as u32 + 1, "a.c"));
            names.push(batch.dictionary.resolve(frame.function).to_owned());
        }
        *again.entry(names).or_insert(0) += sample.value;
    }
    assert_eq!(again, spent, "{what}");
}

fn check_all(store: &Store, known: &[Known], what: &str) {
    let end = BASE + 15_000 * 400;
    check(store, known, "{}", 0, i64::MAX, what);
    check(store, known, r#"{service_name="service-x"}"#, 0, i64::MAX, what);
    check(store, known, r#"{service_name=~"service-x+"}"#, BASE + 15_000 * 10, BASE + 15_000 * 300, what);
    check(store, known, r#"{service_name!="service-"}"#, BASE + 1, end - 1, what);
    check(store, known, "{}", BASE - 100, BASE - 1, what);
}

/// Compares a thinned selection with the known samples: timestamps are kept completely, and the row counts are right.
fn check_part(store: &Store, known: &[Known], what: &str) {
    for most in [known.len() / 2, known.len() / 10] {
        let (part, rows) = select(store, "{}", 0, i64::MAX).at_most(most).unwrap();
        let (_, totals) = part.profiles().unwrap();
        let times: BTreeSet<i64> = totals.iter().map(|one| one.time.0).collect();
        let of_times = |one: &&Known| times.contains(&one.1);
        let sum: i64 = known.iter().filter(of_times).map(|one| one.3).sum();
        assert_eq!(totals.iter().map(|one| one.total).sum::<i64>(), sum, "{what}: times are whole");
        assert_eq!(part.batch().unwrap().samples().iter().map(|one| one.value).sum::<i64>(), sum, "{what}");
        assert_eq!(part.call_tree().unwrap().total()[0], sum, "{what}");
        let rows = rows.unwrap();
        let taken = usize::try_from(rows.taken).unwrap();
        // Half as many would be the next level.
        assert!((most / 8..=most).contains(&taken) && rows.taken < rows.of, "{what}: {rows:?}");
    }
    let (_, all) = select(store, "{}", 0, i64::MAX).at_most(known.len()).unwrap();
    assert_eq!(all, None, "{what}");
}

#[test]
fn a_part_of_a_selection_has_whole_times() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let known = drawn(&mut Random(11), 4000);
    run(store.append(&Tenant::default(), batch(&known[..2000]))).unwrap();
    check_part(&store, &known[..2000], "in memory");
    run(store.flush()).unwrap();
    run(store.append(&Tenant::default(), batch(&known[2000..]))).unwrap();
    check_part(&store, &known, "in a block and in memory");
}

#[test]
fn answers_are_sums_of_what_was_appended() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    let mut known = Vec::new();
    let mut store = open(folder.path());
    for round in 0..40 {
        let samples = drawn(&mut random, 50);
        run(store.append(&Tenant::default(), batch(&samples))).unwrap();
        known.extend(samples);
        match random.below(6) {
            0 => run(store.flush()).unwrap(),
            1 => {
                run(store.flush()).unwrap();
                run(store.compact()).unwrap();
            }
            2 => {
                drop(store);
                store = open(folder.path());
            }
            _ => {}
        }
        if round % 4 == 3 {
            check_all(&store, &known, &format!("round {round}"));
        }
    }
    let status = store.status();
    assert!(status.compactions > 0, "{status:?}");
    assert_eq!((status.damaged_blocks, status.log_damaged), (0, 0));
}

#[test]
fn two_selections_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let samples = drawn(&mut Random(3), 300);
    run(store.append(&Tenant::default(), batch(&samples[..150]))).unwrap();
    run(store.flush()).unwrap();
    run(store.append(&Tenant::default(), batch(&samples[150..]))).unwrap();
    let middle = BASE + 15_000 * 200;
    let (left, right) = (select(&store, "{}", 0, middle), select(&store, "{}", middle + 1, i64::MAX));
    let tree = diff(&left, &right, usize::MAX).unwrap();
    let sum = |is_in: fn(i64, i64) -> bool| -> i64 {
        samples.iter().filter(|one| is_in(one.1, middle)).map(|one| one.3).sum()
    };
    assert_eq!(tree.total(), [sum(|time, middle| time <= middle), sum(|time, middle| time > middle)]);
    assert_eq!(tree.total()[0], left.call_tree().unwrap().total()[0]);
}

#[test]
fn tenants_see_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let samples = drawn(&mut Random(5), 20);
    run(store.append(&Tenant::new("one").unwrap(), batch(&samples))).unwrap();
    assert_eq!(select(&store, "{}", 0, i64::MAX).series().unwrap(), []);
    run(store.flush()).unwrap();
    let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    assert!(!store.select(&Tenant::new("one").unwrap(), all.clone()).unwrap().series().unwrap().is_empty());
    assert_eq!(store.select(&Tenant::new("two").unwrap(), all).unwrap().series().unwrap(), []);
}

#[test]
fn a_task_may_be_the_last_to_hold_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn(&mut Random(9), 20);
    let (store, sent) = (open(folder.path()), batch(&samples));
    run(async move { store.append(&Tenant::default(), sent).await.unwrap() });
    check(&open(folder.path()), &samples, "{}", 0, i64::MAX, "after");
}

#[test]
fn a_directory_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    assert!(matches!(Store::open(options(folder.path())), Err(StoreError::Locked(_))));
    drop(store);
    open(folder.path());
}
