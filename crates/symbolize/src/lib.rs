//! From addresses to functions, inlined calls and source lines: a profile goes in, the same profile with
//! [`Symbols`](plumb_profile::Symbols) comes out.
//!
//! Invariant: a name that can't be trusted is not given. A file that is not the one that was recorded is not used,
//! and everything that is missing has its reason in the [`Summary`].
//!
//! Not here: unwinding, what is shown, and how stacks are counted.

#![forbid(unsafe_code)]

mod beginnings;
mod boundaries;
mod code;
mod compact;
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
mod roots;
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
pub use compact::{CompactCall, CompactError, CompactSymbols};
pub use debug_file::debug_file_path;
pub use debuginfod::names_debuginfod_servers;
pub use job::CodePlace;
pub use options::{Options, Progress};
pub use probe::ProbeStep;
pub use readable::make_readable;
pub use reasons::name_reasons;
pub use search::{FunctionPlace, NotFound, ProbeSite, find_function, probe_site};
pub use session::Session;
pub use summary::{DsoSummary, Missing, Summary};

use std::collections::HashMap;
use std::path::Path;

use plumb_profile::{BuildId, Profile};
use serde::{Deserialize, Serialize};

use crate::gopclntab::GoLines;

/// Finds functions and lines for each frame that has none yet.
///
/// Never fails: what could not be found is said in the summary, file by file, and the frame stays without lines.
/// `progress` is called on this thread, from time to time.
pub fn symbolize(profile: &mut Profile, options: &Options, progress: &mut dyn FnMut(Progress)) -> Summary {
    let mut session = Session::begin(options.for_profile(profile));
    session.close(profile, HashMap::new());
    let summary = session.finish(profile, progress);
    make_readable(profile);
    summary
}

/// Detail of the symbols in an ELF file; more is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SymbolDetail {
    /// At most the functions that other files call.
    #[default]
    Dynamic,
    /// All functions.
    Functions,
    /// Functions and lines, as Go's own table has them.
    Lines,
    /// Functions, lines and inlined calls, by DWARF.
    Dwarf,
    /// As `Dwarf`, with the symbols of all functions in addition.
    Full,
}

/// Returns the detail of an ELF file's symbols.
fn detail(image: &elf::Image) -> SymbolDetail {
    let has_symbols = image.section_of(object::elf::SHT_SYMTAB).is_some();
    match image.has_dwarf() && image.debug_section(".debug_line").is_some() {
        true if has_symbols => SymbolDetail::Full,
        true => SymbolDetail::Dwarf,
        false if GoLines::is_in(image) => SymbolDetail::Lines,
        false if has_symbols || image.section(".gnu_debugdata").is_some() => SymbolDetail::Functions,
        false => SymbolDetail::Dynamic,
    }
}

/// Returns the build ID of an ELF file; `None` if the file can't be read, is not an ELF file, or has no build ID.
pub fn build_id_of(path: &Path) -> Option<BuildId> {
    elf::Image::open(path).ok()?.build_id
}
