//! Rules already found, by program counter, for one address space.

use core::ops::Range;

use crate::address::Avma;

/// Rules by address. One for each address space; tell it when mappings change.
#[derive(Debug, Default)]
pub struct Cache {}

impl Cache {
    /// Forgets what is known about `range`, because something else is mapped there now, or nothing.
    pub fn invalidate(&mut self, range: Range<Avma>) {
        let _ = range;
    }

    /// Forgets everything (exec).
    pub fn clear(&mut self) {}
}
