//! Limits of tenants: blocks of one tenant are removed without touching another's.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use super::support::{one_sample, run};
use super::*;
use crate::clock::now;
use crate::{Selector, TenantQuota};

const DAY: i64 = 86_400_000;

fn append(store: &Store, tenant: &str, time: i64) {
    run(store.append(&Tenant::new(tenant).unwrap(), one_sample(Millis(time)))).unwrap();
}

/// A store in which these tenants have a block of each of the last three days.
fn filled(folder: &Path, tenants: &[&str]) -> Store {
    let options =
        StoreOptions { maintenance_interval: Duration::from_secs(3600), ..StoreOptions::new(folder) };
    let store = Store::open(options).unwrap();
    for days in (1..=3).rev() {
        tenants.iter().for_each(|tenant| append(&store, tenant, now().0 - days * DAY + DAY / 2));
        run(store.flush()).unwrap();
    }
    store
}

/// Number of profiles of each tenant, after a maintenance run with these limits.
fn counts<const N: usize>(store: &Store, tenants: [&str; N], quotas: TenantQuotas) -> [usize; N] {
    store.set_quotas(quotas);
    run(store.compact_due()).unwrap();
    tenants.map(|tenant| {
        let all = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
        store.select(&Tenant::new(tenant).unwrap(), all).unwrap().profiles().unwrap().1.len()
    })
}

fn quotas(of: &str, quota: TenantQuota, others: TenantQuota) -> TenantQuotas {
    TenantQuotas { by_tenant: [(Tenant::new(of).unwrap(), quota)].into(), others }
}

#[test]
fn retention_is_of_a_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let tenants = ["one", "two", "three"];
    let store = filled(folder.path(), &tenants);
    assert_eq!(counts(&store, tenants, TenantQuotas::default()), [3, 3, 3]);
    let days = |days: u32| TenantQuota {
        retention: Some(Duration::from_millis(DAY as u64) * days),
        ..TenantQuota::default()
    };
    assert_eq!(counts(&store, tenants, quotas("one", days(1), days(2))), [1, 2, 2]);
    // The store's own limit is an upper bound.
    append(&store, "one", now().0 - 31 * DAY);
    run(store.flush()).unwrap();
    assert_eq!(counts(&store, tenants, quotas("one", days(1000), days(2))), [1, 2, 2]);
}

#[test]
fn the_oldest_blocks_of_a_tenant_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let tenants = ["one", "two"];
    let store = filled(folder.path(), &tenants);
    let bytes = store.status().tenants[0].1.block_bytes;
    let size = |bytes: u64| TenantQuota { max_bytes: Some(bytes), ..TenantQuota::default() };
    let unlimited = TenantQuota::default();
    assert_eq!(counts(&store, tenants, quotas("one", size(bytes), unlimited)), [3, 3]);
    assert_eq!(counts(&store, tenants, quotas("one", size(bytes - 1), unlimited)), [2, 3]);
    let state = store.shared.tenants.get(&Tenant::new("one").unwrap()).unwrap();
    assert!(state.read().blocks.iter().all(|block| block.meta.until_ms.0 > now().0 - 2 * DAY));
    assert_eq!(counts(&store, tenants, quotas("one", unlimited, size(1))), [2, 0]);
}
