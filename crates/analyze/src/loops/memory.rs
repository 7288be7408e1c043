//! What is known of a machine's caches, and how loads that miss them come by their addresses.

/// Sizes of the caches that a processor has for itself, or shares, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Second level.
    pub l2: u64,
    /// Last level.
    pub l3: u64,
}

impl Default for CacheSizes {
    /// Those of a small server of today.
    fn default() -> Self {
        Self { l2: 1 << 20, l3: 32 << 20 }
    }
}

/// How the address of a load that misses comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessPattern {
    /// The load before read it: one miss is waited for before the next begins.
    PointerChase,
    /// An array of indices has it: several misses go on at a time.
    Gather,
    /// It is computed: a hash, a search, a random number.
    Scattered,
    /// It goes on by so many bytes that each load is on another page, or nearly so: columns of an array that is stored by rows.
    LongStride,
}

impl AccessPattern {
    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            AccessPattern::PointerChase => "pointer-chase",
            AccessPattern::Gather => "gather",
            AccessPattern::Scattered => "scattered",
            AccessPattern::LongStride => "long-stride",
        }
    }
}
