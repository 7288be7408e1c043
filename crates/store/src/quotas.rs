//! Limits of tenants for the data that they store.

use std::collections::HashMap;
use std::time::Duration;

use crate::tenant::Tenant;

/// Limits of a tenant's stored data. The limits of the whole store apply as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantQuota {
    /// Age up to which profiles are kept; `None`: the store's.
    pub retention: Option<Duration>,
    /// Size limit of the tenant's blocks in bytes. The oldest blocks are removed first. `None`: the store's.
    pub max_bytes: Option<u64>,
}

/// Limits of all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantQuotas {
    /// Limits of the tenants that have their own.
    pub by_tenant: HashMap<Tenant, TenantQuota>,
    /// Limits of each other tenant.
    pub others: TenantQuota,
}

impl TenantQuotas {
    /// The limits of a tenant.
    pub fn of(&self, tenant: &Tenant) -> TenantQuota {
        self.by_tenant.get(tenant).copied().unwrap_or(self.others)
    }
}
