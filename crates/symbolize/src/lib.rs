//! From addresses to functions, inlined calls and source lines: a profile goes in, the same profile with
//! [`Symbols`](plumb_profile::Symbols) comes out.
//!
//! Invariant: a name that can't be trusted is not given. A file that is not the one that was recorded is not used,
//! and everything that is missing has its reason in the [`Summary`].
//!
//! Not here: unwinding, what is shown, and how stacks are counted.

#![forbid(unsafe_code)]

mod code;
mod debug_file;
mod debuginfod;
mod demangle;
mod dwarf;
mod elf;
mod extent;
mod file;
mod gopclntab;
mod headers;
mod inflated;
mod jitdump;
mod job;
mod kernel;
mod mini;
mod naming;
mod options;
mod perf_map;
mod plt;
mod probe;
mod readable;
mod reasons;
mod room;
mod search;
mod session;
mod sources;
mod strings;
mod summary;
mod symbols;
mod symtab;
mod table;
mod vdso;
mod work;

pub use code::{Binary, FunctionCode, NoCode};
pub use job::CodePlace;
pub use options::{Options, Progress};
pub use probe::ProbeStep;
pub use readable::make_readable;
pub use reasons::name_reasons;
pub use search::{FunctionPlace, NotFound, find_function};
pub use session::Session;
pub use summary::{DsoSummary, Missing, Summary};

use std::collections::HashMap;
use std::path::Path;

use plumb_profile::{BuildId, Profile};

/// Finds for each frame that has no lines yet what it stands for.
///
/// Never fails: what could not be found is said in the summary, file by file, and the frame stays without lines.
/// `progress` is called on this thread, from time to time.
pub fn symbolize(profile: &mut Profile, options: &Options, progress: &mut dyn FnMut(Progress)) -> Summary {
    let mut session = Session::begin(options.clone());
    session.close(profile, HashMap::new());
    let summary = session.finish(profile, progress);
    make_readable(profile);
    summary
}

/// The build id of an ELF file; `None` if it can't be read, is no ELF file, or has none.
pub fn build_id_of(path: &Path) -> Option<BuildId> {
    elf::Image::open(path).ok()?.build_id
}
