//! CPU profiles of V8 (`.cpuprofile`), as `node --cpu-prof`, Chrome's DevTools and Deno write them.
//!
//! <https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>.

mod read;
mod samples;

pub(crate) use read::read;
pub(crate) use samples::{Node, Samples};
