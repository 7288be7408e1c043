//! Versions of the format: written and supported ones.

/// Format version that is written: major, minor.
pub(super) const VERSION: (u32, u32) = (1, 9);
/// Version of a recording too large to be in memory at once: stacks may occur several times.
pub(super) const IN_PARTS: (u32, u32) = (2, 0);
/// The newest version supported.
pub(super) const NEWEST: (u32, u32) = IN_PARTS;
