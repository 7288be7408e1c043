//! CPU time of page faults.

use super::spent::{Code, Spent};
use crate::kernel::{Cause, Places};

impl Code<'_, '_> {
    /// Returns the CPU time of page faults, by the functions in which they occurred.
    pub(super) fn page_faults(&self) -> Spent {
        let places = Places::new(self.view());
        let is_fault = |node| {
            let place = places.of(self.tree().in_view(node));
            place.cause(None) == Cause::Fault
        };
        self.below(is_fault)
    }
}
