//! The text of a profile, each string stored once.
//!
//! Row 0 is always the empty string, which stands for "not known" wherever a table holds an optional text.

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
    /// The id of `text`.
    pub fn add(&mut self, text: &str) -> StringId {
        self.table.add(text.into())
    }

    /// The text.
    pub fn get(&self, id: StringId) -> &str {
        &self.table[id]
    }

    /// The id of the empty string, which means "not known".
    pub fn empty(&self) -> StringId {
        crate::table::Id::from_index(0)
    }

    /// The id of row `index` if there is such a row.
    pub fn check(&self, index: u64) -> Option<StringId> {
        self.table.check(index)
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.table.rows().iter().map(|s| &**s)
    }

    /// Number of strings, the empty one included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Never true: the empty string is always there.
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
