//! The hotspot report as a document, and its inputs: the code of hot functions, sources of scripts, cache sizes.
//!
//! Elsewhere: the analysis (`analyze`), the report for people (`cli`).

mod document;
pub mod headline;
mod hot_functions;
mod loops;
pub mod places;
mod scripts;

use plumb_analyze::{CacheSizes, ExplainOptions, Explanation, Filter, ScriptSources};
use plumb_profile::Profile;
use serde_json::Value;

pub use document::document;
pub use hot_functions::HotFunctions;
pub use scripts::sources;

/// Returns the cache sizes of this machine, which are assumed to be the recording's.
pub fn caches() -> CacheSizes {
    let [_, l2, l3, l4] = plumb_process::cache_sizes();
    let known = CacheSizes::default();
    let l2 = l2.unwrap_or(known.l2);
    CacheSizes { l2, l3: l4.or(l3).unwrap_or(known.l3.max(l2)) }
}

/// Whether files that a profile names may be read: binaries for their code, scripts for their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFiles {
    /// The files are this machine's, and the user may read them.
    Read,
    /// The profile came from somebody else, who must not choose which files are read here.
    Ignore,
}

/// Returns the verdict on the samples that a filter of one event keeps, as one object.
pub fn verdict(profile: &Profile, filter: &Filter, threshold: f64, files: NamedFiles) -> Value {
    let view = Explanation::view(profile, filter);
    let call_name = crate::kernel_time::call_names(profile);
    let (sources, code) = match files {
        NamedFiles::Read => (sources(&view), HotFunctions::read(&view)),
        NamedFiles::Ignore => (ScriptSources::default(), HotFunctions::unread(&view)),
    };
    let options = ExplainOptions {
        calls: Vec::new(),
        threshold,
        call_name: &call_name,
        sources: &sources,
        caches: caches(),
        waits: None,
    };
    let report = Explanation::new(view, filter, &code.for_analysis(), &options);
    document(&report, &code, &[])
}
