//! Metrics by tenant, for Prometheus.
//!
//! Invariant: the number of tenants with a name in them is bounded.

use std::fmt;
use std::sync::atomic::AtomicU64;

use plumb_store::{StoreStatus, Tenant};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::limits::RateLimiter;

/// Most tenants with the size of their blocks: the largest ones.
const MOST: usize = 100;
/// Label of the tenants without a name; no tenant can have it.
const OTHERS: &str = "*";

/// Label of a tenant.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TenantLabel {
    tenant: String,
}

/// Writes the metrics of all tenants, or of `only` one.
pub(crate) fn encode(
    out: &mut String,
    store: &StoreStatus,
    rates: &RateLimiter,
    only: Option<&Tenant>,
) -> fmt::Result {
    let mut registry = Registry::with_prefix("plumb_tenant");
    let is_shown = |name: &str| only.is_none_or(|only| only.as_str() == name);
    let label = |name: &str| TenantLabel { tenant: name.to_owned() };

    let sizes = Family::<TenantLabel, Gauge>::default();
    let mut largest: Vec<(&str, u64)> =
        store.tenants.iter().map(|(name, status)| (&**name, status.block_bytes)).collect();
    largest.retain(|&(name, _)| is_shown(name));
    largest.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    for (name, bytes) in largest.into_iter().take(MOST) {
        sizes.get_or_create(&label(name)).set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
    registry.register("block_bytes", "Size of the blocks of the largest tenants", sizes);

    let refused = Family::<TenantLabel, Counter<u64, AtomicU64>>::default();
    let (by_tenant, others) = rates.refused_bytes();
    for (tenant, bytes) in by_tenant.iter().filter(|(tenant, _)| is_shown(tenant.as_str())) {
        refused.get_or_create(&label(tenant.as_str())).inc_by(*bytes);
    }
    if others > 0 && only.is_none() {
        refused.get_or_create(&label(OTHERS)).inc_by(others);
    }
    let help = "Bodies of requests that were refused because their tenant exceeds its rate";
    registry.register_with_unit("refused", help, Unit::Bytes, refused);
    text::encode_registry(out, &registry)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use plumb_store::TenantStatus;

    use super::*;

    #[test]
    fn the_largest_tenants_are_listed_and_one_sees_itself_alone() {
        let status = |bytes| TenantStatus { block_bytes: bytes, ..TenantStatus::default() };
        let tenants = (0..500).map(|number| (format!("t{number}"), status(number))).collect();
        let store = StoreStatus { tenants, ..StoreStatus::default() };
        let rates = RateLimiter::default();
        rates.refused(&Tenant::new("t7").unwrap(), 42);
        let series = |only: Option<&Tenant>| {
            let mut out = String::new();
            encode(&mut out, &store, &rates, only).unwrap();
            out.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        let all = series(None);
        assert_eq!(all.len(), MOST + 1);
        let refused = r#"plumb_tenant_refused_bytes_total{tenant="t7"} 42"#;
        for line in [r#"plumb_tenant_block_bytes{tenant="t499"} 499"#, refused] {
            assert!(all.iter().any(|one| one == line), "{all:?}");
        }
        let own = series(Some(&Tenant::new("t7").unwrap()));
        assert_eq!(own, [r#"plumb_tenant_block_bytes{tenant="t7"} 7"#, refused]);
    }
}
