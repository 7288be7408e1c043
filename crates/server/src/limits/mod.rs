//! Limits of tenants, from a file that is read again while the server runs.
//!
//! Here: the file, and the rate of what a tenant sends. Elsewhere: removing blocks by retention and size (`store`).

mod file;
mod rate;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use plumb_store::{Tenant, TenantQuota, TenantQuotas};

use self::file::{LimitTable, TenantLimit};
pub(crate) use self::rate::RateLimiter;

/// Limits of all tenants. Clones share them.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    current: Arc<RwLock<LimitTable>>,
    /// The file that they were read from.
    path: PathBuf,
}

/// The reason why a file of limits is rejected.
#[derive(Debug)]
pub enum TenantLimitsError {
    /// The file can't be read.
    Io(PathBuf, std::io::Error),
    /// An invalid line: its number and the reason.
    Line(PathBuf, usize, String),
    /// The file has no line.
    Empty(PathBuf),
}

impl fmt::Display for TenantLimitsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(out, "cannot read {}: {error}", path.display()),
            Self::Line(path, line, why) => write!(
                out,
                "{}:{line}: {why}; a line is a tenant, or * for all others, and its limits, such as: shop retention=7d max_size=2G rate=512K",
                path.display()
            ),
            Self::Empty(path) => {
                write!(out, "{} names no tenant; a line with * alone means no limits", path.display())
            }
        }
    }
}

impl std::error::Error for TenantLimitsError {}

impl TenantLimits {
    /// Reads a file: on each line a tenant, or `*` for all others, and its limits.
    ///
    /// # Errors
    /// The file can't be read, has no line, or one that is invalid.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, TenantLimitsError> {
        let path = path.into();
        Ok(Self { current: Arc::new(RwLock::new(of_file(&path)?)), path })
    }

    /// Reads the file again. Returns whether it has changed.
    ///
    /// # Errors
    /// The file is refused; the limits stay as they are.
    pub(crate) fn reload(&self) -> Result<bool, TenantLimitsError> {
        let read = of_file(&self.path)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = *current != read;
        *current = read;
        Ok(is_new)
    }

    /// The limits that the store applies.
    pub(crate) fn quotas(&self) -> TenantQuotas {
        let quota =
            |limit: &TenantLimit| TenantQuota { retention: limit.retention, max_bytes: limit.max_bytes };
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let by_tenant = current.by_tenant.iter().map(|(tenant, limit)| (tenant.clone(), quota(limit)));
        TenantQuotas { by_tenant: by_tenant.collect(), others: quota(&current.others) }
    }

    /// Bytes of profiles that a tenant may send a second in the long run; `None`: unlimited.
    pub(crate) fn rate(&self, tenant: &Tenant) -> Option<u64> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.by_tenant.get(tenant).unwrap_or(&current.others).rate
    }
}

fn of_file(path: &Path) -> Result<LimitTable, TenantLimitsError> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|error| TenantLimitsError::Io(path.clone(), error))?;
    match LimitTable::parse(&text) {
        Ok(Some(table)) => Ok(table),
        Ok(None) => Err(TenantLimitsError::Empty(path)),
        Err((line, why)) => Err(TenantLimitsError::Line(path, line, why)),
    }
}
