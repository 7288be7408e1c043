//! Typed ids and the two kinds of table that they index: one that appends, one that interns equal rows.
//!
//! An id is only ever made by its table, so looking one up in the table that made it can't fail. Rows are never
//! removed. An id from somewhere else (a file) has to pass [`Table::check`] first.

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Index;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A row number of one particular table.
pub trait Id: Copy + Eq + Ord + Hash + Debug {
    /// The id of row `index`.
    fn from_index(index: usize) -> Self;
    /// The row number.
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

/// Rows in the order in which they were pushed.
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

    /// The row, to be changed in place.
    pub fn get_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }

    /// The id of row `index` if there is such a row: the door for row numbers that came from a file.
    pub fn check(&self, index: u64) -> Option<I> {
        usize::try_from(index).ok().filter(|&i| i < self.rows.len()).map(I::from_index)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in order.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Ids and rows in order.
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

/// Rows without duplicates: adding an equal row gives the id of the first.
#[derive(Clone, Debug)]
pub struct Interned<I, T> {
    rows: Table<I, T>,
    /// By the hashes of their rows, which are not kept twice: a recorder has millions of them.
    ids: HashTable<I>,
}

fn hash(row: &impl Hash) -> u64 {
    BuildHasherDefault::<FastHasher>::default().hash_one(row)
}

impl<I: Id, T: Eq + Hash> Interned<I, T> {
    /// The id of the row that equals `row`, which is added if there is none.
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

    /// Changes rows in place: each keeps its id. Rows that become equal stay apart, and looking one of them up gives the
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

    /// The id of the row that equals `row`, if there is one.
    pub fn find(&self, row: &T) -> Option<I> {
        self.ids.find(hash(row), |&id| self.rows[id] == *row).copied()
    }

    /// The id of row `index` if there is such a row: the door for row numbers that came from a file.
    pub fn check(&self, index: u64) -> Option<I> {
        self.rows.check(index)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in order.
    pub fn rows(&self) -> &[T] {
        self.rows.rows()
    }

    /// Ids and rows in order.
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

/// A multiply-and-rotate hash (the one rustc uses) for keys that are a few integers: interning a frame is on the
/// path of every sample. Not proof against chosen collisions, which here could only slow down their own profile.
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
        // The table takes its bucket from the low bits, which multiplication leaves weakest.
        self.0.rotate_left(26)
    }
}
