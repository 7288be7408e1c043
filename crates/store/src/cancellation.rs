//! Whether a query is still wanted: its loops ask, and end early once nobody waits for the answer.
//!
//! Not here: who decides that (`server`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StoreError;

/// A flag that ends a query. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    cancelled: Arc<AtomicBool>,
    /// After so many questions the answer is yes.
    #[cfg(test)]
    checks_left: Option<Arc<std::sync::atomic::AtomicUsize>>,
}

impl Cancellation {
    /// Ends the query: its next check fails.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(test)]
        if let Some(left) = &self.checks_left
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        {
            self.cancel();
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// [`StoreError::Cancelled`] if nobody waits for the answer any more. A load and a branch: loops may ask for each row.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.is_cancelled() { Err(StoreError::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
impl Cancellation {
    /// Cancelled once it was asked so many times.
    pub fn after(checks: usize) -> Self {
        Self { checks_left: Some(Arc::new(checks.into())), ..Self::default() }
    }
}
