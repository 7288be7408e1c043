//! The Firefox Profiler's processed profile, for <https://profiler.firefox.com>, as samply and the Firefox Profiler save it.
//!
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>. Written is version 55 of it, which
//! every newer Firefox Profiler reads.

mod read;
mod tables;
mod write;

pub(crate) use read::read;
pub use write::write;
