//! The hotspot report as a document, and what it is made with: the code of hot functions, sources of scripts, the caches.
//!
//! Not here: the analysis (`analyze`), the report for people (`cli`).

mod document;
mod hot_functions;
mod loops;
mod scripts;

use plumb_analyze::CacheSizes;

pub use document::document;
pub use hot_functions::HotFunctions;
pub use scripts::sources;

/// The caches of this machine, which is taken for that of the recording.
pub fn caches() -> CacheSizes {
    let [_, l2, l3, l4] = plumb_process::cache_sizes();
    let known = CacheSizes::default();
    let l2 = l2.unwrap_or(known.l2);
    CacheSizes { l2, l3: l4.or(l3).unwrap_or(known.l3.max(l2)) }
}
