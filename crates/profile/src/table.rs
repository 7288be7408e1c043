//! Typed ids and the two kinds of table that they index: one appends rows, one interns equal rows.
//!
//! Ids are only created by their table, so looking one up in that table cannot fail. Rows are never
//! removed. An id from elsewhere (a file) must pass [`Table::check`] first.

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Index;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A row number of one particular table.
pub trait Id: Copy + Eq + Ord + Hash + Debug {
    /// Returns the id of row `index`.
    fn from_index(index: usize) -> Self;
    /// Returns the row number.
    fn index(self) -> usize;
}

/// Defines a row number type for one table.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u32);

        impl $crate::table::Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 rows fit in memory"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use id;

/// Rows in the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<I, T> {
    rows: Vec<T>,
    id: PhantomData<I>,
}

impl<I: Id, T> Table<I, T> {
    /// Appends a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::from_index(self.rows.len() - 1)
    }

    /// Returns the row for modification.
    pub fn get_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }

    /// Returns the id of row `index` if there is such a row: converts row numbers from files.
    pub fn check(&self, index: u64) -> Option<I> {
        usize::try_from(index).ok().filter(|&i| i < self.rows.len()).map(I::from_index)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Iterates over ids and rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (I, &T)> {
        self.rows.iter().enumerate().map(|(i, row)| (I::from_index(i), row))
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

/// Rows without duplicates: adding an equal row returns the id of the first.
#[derive(Clone, Debug)]
pub struct Interned<I, T> {
    rows: Table<I, T>,
    /// Ids by the hashes of their rows, which are not stored twice: a recorder has millions of them.
    ids: HashTable<I>,
}

fn hash(row: &impl Hash) -> u64 {
    BuildHasherDefault::<FastHasher>::default().hash_one(row)
}

impl<I: Id, T: Eq + Hash> Interned<I, T> {
    /// Returns the id of the row that equals `row`, adding it if needed.
    pub fn add(&mut self, row: T) -> I {
        let Self { rows, ids } = self;
        let of_row = hash(&row);
        match ids.entry(of_row, |&id| rows[id] == row, |&id| hash(&rows[id])) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let id = I::from_index(rows.len());
                new.insert(id);
                rows.push(row)
            }
        }
    }

    /// Modifies rows in place: each keeps its id. Rows that become equal stay separate, and looking one of them up returns the
    /// first.
    pub fn change(&mut self, change: impl FnMut(&mut T)) {
        self.rows.rows.iter_mut().for_each(change);
        let Self { rows, ids } = self;
        ids.clear();
        for (id, row) in rows.iter() {
            if let Entry::Vacant(new) =
                ids.entry(hash(row), |&known| rows[known] == *row, |&known| hash(&rows[known]))
            {
                new.insert(id);
            }
        }
    }

    /// Returns the id of the row that equals `row`, if there is one.
    pub fn find(&self, row: &T) -> Option<I> {
        self.ids.find(hash(row), |&id| self.rows[id] == *row).copied()
    }

    /// Returns the id of row `index` if there is such a row: converts row numbers from files.
    pub fn check(&self, index: u64) -> Option<I> {
        self.rows.check(index)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> &[T] {
        self.rows.rows()
    }

    /// Iterates over ids and rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (I, &T)> {
        self.rows.iter()
    }
}

impl<I, T> Default for Interned<I, T> {
    fn default() -> Self {
        Self { rows: Table::default(), ids: HashTable::default() }
    }
}

impl<I: Id, T> Index<I> for Interned<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id]
    }
}

/// A multiply-and-rotate hash (as used by rustc) for keys of a few integers: interning a frame is on the
/// path of every sample. Not resistant to chosen collisions, which could only slow down the profile that has them.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.mix(n.into());
    }
    fn write_u32(&mut self, n: u32) {
        self.mix(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits, which are the weakest after multiplication.
        self.0.rotate_left(26)
    }
}
