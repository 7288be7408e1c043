//! The hotspot report as a document, and its inputs: the code of hot functions, sources of scripts, cache sizes.
//!
//! Elsewhere: the analysis (`analyze`), the layout of the report for people (`cli`).

mod causes;
mod document;
pub mod headline;
mod hot_functions;
mod loops;
pub mod places;
mod quality;
pub mod report;
mod scripts;
mod shares;
mod verdict;

use plumb_analyze::{CacheSizes, ExplainOptions, Explanation, Filter, ScriptSources};
use plumb_profile::Profile;

pub use document::ExplainDocument;
pub use hot_functions::HotFunctions;
pub use quality::QualityJson;
pub use scripts::sources;
pub use shares::ShareJson;
pub use verdict::{CandidateJson, VerdictJson};

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

/// Returns the verdict on the samples that a filter of one event keeps.
pub fn verdict(profile: &Profile, filter: &Filter, threshold: f64, files: NamedFiles) -> ExplainDocument {
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
    ExplainDocument::new(&report, &code, &[])
}
