//! Deletion of a tenant: nothing of it comes back, whenever the server is killed, and other tenants and later profiles stay.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use super::support::{one_sample, run};
use super::*;
use crate::wal;
use crate::{Millis, RequestKey, Selector};

const BUILD_ID: &str = "00ff00ff00ff00ff";

fn open(folder: &Path) -> Store {
    let long = Duration::from_secs(u32::MAX.into());
    Store::open(StoreOptions { retention: long, maintenance_interval: long, ..StoreOptions::new(folder) })
        .unwrap()
}

fn tenants() -> [Tenant; 2] {
    ["shop", "mail"].map(|name| Tenant::new(name).unwrap())
}

fn append(store: &Store, tenant: &Tenant, time: i64) {
    let mut batch = one_sample(Millis(time));
    batch.request = Some(RequestKey::new(tenant, &time.to_le_bytes()));
    run(store.append(tenant, batch)).unwrap();
}

fn times(store: &Store, tenant: &Tenant) -> Vec<i64> {
    let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let (_, profiles) = store.select(tenant, all).unwrap().profiles().unwrap();
    profiles.iter().map(|one| one.time.0).collect()
}

/// A store in which both tenants have a merged block, a block, a profile in the log, and symbols.
fn filled(folder: &Path) -> Store {
    let store = open(folder);
    let elf = folder.join("elf");
    std::fs::write(&elf, "symbols").unwrap();
    for time in 1..=3 {
        tenants().iter().for_each(|tenant| append(&store, tenant, time));
        if time < 3 {
            run(store.flush()).unwrap();
            run(store.compact()).unwrap();
        }
    }
    for tenant in tenants() {
        assert!(store.put_symbols(&tenant, BUILD_ID, &elf).unwrap());
        assert_eq!(times(&store, &tenant), [1, 2, 3]);
    }
    store
}

/// A copy of a store as a killed server leaves it.
fn killed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(folder, copy.path());
    copy
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy_tree(&path, &target) } else { _ = std::fs::copy(&path, &target).unwrap() }
    }
}

fn files_of(folder: &Path, tenant: &Tenant) -> PathBuf {
    folder.join("blocks").join(tenant.as_str())
}

/// Whether the tenant has these profiles, the other one has all of its own, and both are so after a restart.
fn assert_times(folder: &Path, expected: &[i64]) {
    let [shop, mail] = tenants();
    for _ in 0..2 {
        let store = open(folder);
        assert_eq!((times(&store, &shop), times(&store, &mail)), (expected.to_vec(), vec![1, 2, 3]));
        assert_eq!((store.has_symbols(&shop, BUILD_ID), store.has_symbols(&mail, BUILD_ID)), (false, true));
        assert_eq!(store.status().damaged_blocks, 0);
    }
}

#[test]
fn a_deleted_tenant_stays_deleted_and_may_send_again() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, mail] = tenants();
    let store = filled(folder.path());
    run(store.delete_tenant(&shop)).unwrap();
    assert_eq!((times(&store, &shop), times(&store, &mail)), (vec![], vec![1, 2, 3]));
    assert!(!files_of(folder.path(), &shop).exists() && !store.has_symbols(&shop, BUILD_ID));
    assert_times(killed(folder.path()).path(), &[]);
    // A client that sends a deleted request again brings nothing back.
    append(&store, &shop, 3);
    append(&store, &shop, 4);
    assert_eq!(times(&store, &shop), [4]);
    assert_times(killed(folder.path()).path(), &[4]);
    run(store.flush()).unwrap();
    append(&store, &shop, 5);
    assert_times(killed(folder.path()).path(), &[4, 5]);
    // A second deletion works like the first; so does that of a tenant without any profile.
    run(store.delete_tenant(&shop)).unwrap();
    run(store.delete_tenant(&Tenant::default())).unwrap();
    append(&store, &shop, 6);
    drop(store);
    assert_times(folder.path(), &[6]);
    assert!(open(folder.path()).shared.tombstones.lock().unwrap().next_segment() == 0);
}

#[test]
fn a_deletion_that_was_cut_short_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, _] = tenants();
    let store = filled(folder.path());
    let next = 1 + wal::segments(&folder.path().join("log")).unwrap().last().unwrap().0;
    // Killed once the tombstone is written, and after each further file is removed.
    for removed in 0.. {
        let copy = killed(folder.path());
        Tombstones::open(&copy.path().join("log")).unwrap().add(&shop, next).unwrap();
        let mut files = Vec::new();
        list(&files_of(copy.path(), &shop), &mut files);
        files.iter().take(removed).for_each(|file| std::fs::remove_file(file).unwrap());
        assert_times(copy.path(), &[]);
        assert!(!files_of(copy.path(), &shop).exists());
        if removed >= files.len() {
            break;
        }
    }
    drop(store);
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

/// Deletions, blocks and further profiles overlap: what was acknowledged before a deletion is gone after it.
#[test]
fn deletions_overlap_with_blocks_that_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, mail] = tenants();
    let store = open(folder.path());
    for time in 1..=3 {
        append(&store, &mail, time);
    }
    store.put_symbols(&mail, BUILD_ID, &folder.path().join("server")).unwrap();
    let delete = |times: usize| (0..times).for_each(|_| run(store.delete_tenant(&shop)).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| delete(20));
        }
        scope.spawn(|| (0..20).for_each(|_| run(store.flush()).unwrap()));
        for time in 0..100 {
            append(&store, &shop, time);
        }
    });
    append(&store, &shop, 100);
    let left = times(&store, &shop);
    assert_times(killed(folder.path()).path(), &left);
    delete(1);
    append(&store, &shop, 101);
    drop(store);
    assert_times(folder.path(), &[101]);
}

/// The removal of files may fail, while the tenant goes on sending.
#[test]
fn what_came_after_a_deletion_that_could_not_be_finished_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, _] = tenants();
    let store = filled(folder.path());
    run(store.flush()).unwrap();
    let next = wal::segments(&folder.path().join("log")).unwrap().last().unwrap().0;
    store.shared.tombstones.lock().unwrap().add(&shop, next).unwrap();
    append(&store, &shop, 4);
    run(store.flush()).unwrap();
    append(&store, &shop, 5);
    assert_times(killed(folder.path()).path(), &[4, 5]);
    drop(store);
    assert_times(folder.path(), &[4, 5]);
}

#[test]
fn nothing_is_deleted_without_a_tombstone() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, _] = tenants();
    let store = filled(folder.path());
    let obstacle = folder.path().join("log/deleted.part");
    std::fs::create_dir(&obstacle).unwrap();
    let error = run(store.delete_tenant(&shop)).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("deleted"), "{error}");
    assert_eq!(times(&store, &shop), [1, 2, 3]);
    std::fs::remove_dir(obstacle).unwrap();
    run(store.delete_tenant(&shop)).unwrap();
    drop(store);
    assert_times(folder.path(), &[]);
}

#[test]
fn a_tenant_of_a_shared_bucket_is_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let [shop, _] = tenants();
    let bucket = Arc::new(object_store::memory::InMemory::new());
    let store = Store::open_with(StoreOptions::new(folder.path()), |_, _| Bucket::memory(bucket)).unwrap();
    append(&store, &shop, 1);
    let error = run(store.delete_tenant(&shop)).unwrap_err();
    assert!(
        matches!(error, StoreError::SharedTenant(_)) && error.to_string().contains("stop all servers"),
        "{error}"
    );
    assert_eq!(times(&store, &shop), [1]);
}
