//! A machine's cache sizes, and the address patterns of loads that miss the caches.

use serde::Serialize;

/// Sizes of a processor's private and shared caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Second level.
    pub l2: u64,
    /// Last level.
    pub l3: u64,
}

impl Default for CacheSizes {
    /// The sizes of a small current server.
    fn default() -> Self {
        Self { l2: 1 << 20, l3: 32 << 20 }
    }
}

/// The address pattern of loads that miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessPattern {
    /// The previous load read the address: misses are serialized.
    PointerChase,
    /// The address comes from an array of indices: several misses overlap.
    Gather,
    /// The address is computed: a hash, a search, a random number.
    Scattered,
    /// A constant stride that takes nearly every load to another page: columns of an array stored by rows.
    LongStride,
}
