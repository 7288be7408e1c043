//! The Firefox Profiler's processed profile, for <https://profiler.firefox.com>, as saved by samply and the Firefox Profiler.
//!
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>. Version 55 is written, which
//! every newer Firefox Profiler reads.

mod columns;
mod read;
mod write;

pub(crate) use read::read;
pub use write::write;
