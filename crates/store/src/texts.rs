//! Many texts without memory of their own.

/// Texts in one piece of memory.
#[derive(Default)]
pub(crate) struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    /// The text of an index.
    pub fn get(&self, place: u32) -> &str {
        let place = place as usize;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin..self.ends[place]]
    }

    /// All texts, by index.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|place| self.get(place))
    }

    /// Adds a text, unless it is equal to the last one. Returns its index.
    pub fn push(&mut self, text: &str) -> u32 {
        let count = self.ends.len() as u32;
        match count.checked_sub(1) {
            Some(last) if self.get(last) == text => last,
            _ => {
                self.all.push_str(text);
                self.ends.push(self.all.len());
                count
            }
        }
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.all.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}
