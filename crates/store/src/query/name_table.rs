//! Names of the functions that a query reads, each once: several blocks are read at a time, and all their names get ids.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::texts::Texts;

/// Number of parts that are locked one by one, so that threads seldom wait for each other.
const PARTS: usize = 32;

/// Names by id. Which id a name gets depends on which thread meets it first: nothing that is answered may depend on it.
#[derive(Default)]
pub(super) struct NameTable {
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

#[derive(Default)]
struct Part {
    /// Hash and place of each name. The hash spares most looks at the text.
    places: HashTable<(u64, u32)>,
    texts: Texts,
}

impl NameTable {
    /// The ids of many names. Each part is locked once.
    pub fn ids(&self, names: &Texts) -> Vec<u32> {
        let hashes: Vec<u64> = names.iter().map(|name| self.hasher.hash_one(name)).collect();
        let mut order: Vec<u32> = (0..hashes.len() as u32).collect();
        order.sort_by_key(|&name| part_of(hashes[name as usize]));
        let mut ids = vec![0; hashes.len()];
        for of_part in
            order.chunk_by(|&one, &next| part_of(hashes[one as usize]) == part_of(hashes[next as usize]))
        {
            let number = part_of(hashes[of_part[0] as usize]);
            let mut part = self.part(number);
            for &name in of_part {
                ids[name as usize] = id(part.place(hashes[name as usize], names.get(name)), number);
            }
        }
        ids
    }

    /// The id of a name.
    pub fn id(&self, name: &str) -> u32 {
        let hash = self.hasher.hash_one(name);
        id(self.part(part_of(hash)).place(hash, name), part_of(hash))
    }

    /// The name of an id.
    pub fn text(&self, id: u32) -> Arc<str> {
        self.part(id as usize % PARTS).texts.get(id / PARTS as u32).into()
    }

    /// Memory of all names, in bytes.
    pub fn bytes(&self) -> usize {
        (0..PARTS).map(|number| self.part(number).bytes()).sum()
    }

    fn part(&self, number: usize) -> MutexGuard<'_, Part> {
        self.parts[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part that a name with this hash is in. The tables use the lowest and the highest bits.
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

fn id(place: u32, part: usize) -> u32 {
    place * PARTS as u32 + part as u32
}

impl Part {
    /// The place of a name, which is added if it is new.
    fn place(&mut self, hash: u64, name: &str) -> u32 {
        let is_it = |&(other, place): &(u64, u32)| other == hash && self.texts.get(place) == name;
        if let Some(&(_, place)) = self.places.find(hash, is_it) {
            return place;
        }
        let place = self.texts.push(name);
        self.places.insert_unique(hash, (hash, place), |&(hash, _)| hash);
        place
    }

    fn bytes(&self) -> usize {
        self.places.allocation_size() + self.texts.bytes()
    }
}
