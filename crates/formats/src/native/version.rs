//! Versions of the format: what is written, what is understood.

/// Version of the format that is written: major, minor.
pub(super) const VERSION: (u32, u32) = (1, 8);
/// Version of a recording that was too large to be in memory at once: stacks may be there several times.
pub(super) const IN_PARTS: (u32, u32) = (2, 0);
/// The newest version that is understood.
pub(super) const NEWEST: (u32, u32) = IN_PARTS;
