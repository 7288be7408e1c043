//! Cancellation of queries: their loops check a flag, and return early once the client has gone.
//!
//! Elsewhere: the decision to cancel (`server`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StoreError;

/// A flag that cancels a query. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    cancelled: Arc<AtomicBool>,
    /// Number of checks after which it is cancelled.
    #[cfg(test)]
    checks_left: Option<Arc<std::sync::atomic::AtomicUsize>>,
}

impl Cancellation {
    /// Cancels the query: its next check fails.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the query is cancelled.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(test)]
        if let Some(left) = &self.checks_left
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        {
            self.cancel();
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns [`StoreError::Cancelled`] if the query is cancelled. Costs a load and a branch, so loops may check each row.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.is_cancelled() { Err(StoreError::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
impl Cancellation {
    /// A cancellation that takes effect after `checks` checks.
    pub fn after(checks: usize) -> Self {
        Self { checks_left: Some(Arc::new(checks.into())), ..Self::default() }
    }
}
