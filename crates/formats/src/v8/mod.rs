//! V8 CPU profiles (`.cpuprofile`), as written by `node --cpu-prof`, Chrome's DevTools and Deno.
//!
//! <https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>.

mod read;
mod samples;

pub(crate) use read::read;
pub(crate) use samples::{Node, Samples};
