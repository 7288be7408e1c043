//! Addresses of a file where what is known of an address may change.

/// Most addresses, which take 8 bytes each: a file of half a gigabyte has as many.
const MOST: usize = 16 << 20;

/// Such addresses.
#[derive(Debug, Default)]
pub(crate) struct Boundaries(Vec<u64>);

impl Boundaries {
    /// Adds an address, if there is room.
    pub fn push(&mut self, address: u64) {
        if !self.is_full() {
            self.0.push(address);
        }
    }

    /// Adds addresses, as far as there is room.
    pub fn extend(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let room = MOST.saturating_sub(self.0.len());
        self.0.extend(addresses.into_iter().take(room));
    }

    /// Whether the room is used up: addresses may be missing.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Returns each address once, sorted.
    pub fn sorted(mut self) -> Vec<u64> {
        self.0.sort_unstable();
        self.0.dedup();
        self.0
    }
}
