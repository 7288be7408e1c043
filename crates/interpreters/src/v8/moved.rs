//! Functions by their bytecode. A collector moves young closures, so that one on a stack that was copied may be gone when it is looked for; bytecode stays
//! where it is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::CodeId;

use super::heap::{Heap, Tagged};
use super::shared;

/// Most functions that are kept.
const MAX_FUNCTIONS: usize = 1 << 16;

/// The functions that were seen, by the address of their bytecode.
#[derive(Debug, Default)]
pub(super) struct ByBytecode(Mutex<HashMap<u64, Tagged>>);

impl ByBytecode {
    /// Keeps the function of some bytecode.
    pub(super) fn learn(&self, bytecode: Tagged, function: Tagged) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_FUNCTIONS && !known.contains_key(&bytecode.0) {
            known.clear();
        }
        known.insert(bytecode.0, function);
    }

    /// The function of some bytecode, if it still has that.
    pub(super) fn function(&self, heap: Heap<'_>, bytecode: Tagged) -> Option<CodeId> {
        let function = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&bytecode.0)?;
        let is_same = shared::bytecode(heap, function) == Ok(bytecode);
        is_same.then(|| shared::id(heap, function).ok()).flatten()
    }
}
