//! The text of a profile, each string stored once.
//!
//! Row 0 is always the empty string, which means "not known" wherever a table has an optional text.

use crate::table::{Interned, id};

id!(
    /// A string of the profile.
    StringId
);

/// Interned strings.
#[derive(Clone, Debug)]
pub struct Strings {
    table: Interned<StringId, Box<str>>,
}

impl Strings {
    /// Returns the id of `text`, adding it if needed.
    pub fn add(&mut self, text: &str) -> StringId {
        self.table.add(text.into())
    }

    /// Returns the text.
    pub fn get(&self, id: StringId) -> &str {
        &self.table[id]
    }

    /// Returns the id of the empty string, which means "not known".
    pub fn empty(&self) -> StringId {
        crate::table::Id::from_index(0)
    }

    /// Returns the id of row `index` if there is such a row.
    pub fn check(&self, index: u64) -> Option<StringId> {
        self.table.check(index)
    }

    /// Iterates over all strings by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.table.rows().iter().map(|s| &**s)
    }

    /// Returns the number of strings, including the empty one.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns false: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Default for Strings {
    fn default() -> Self {
        let mut table = Interned::default();
        table.add("".into());
        Self { table }
    }
}
