//! What was found and what was not, file by file, with the reason: [`Summary`].

use std::fmt;
use std::path::PathBuf;

use plumb_profile::DsoId;

/// What [`symbolize`](crate::symbolize) did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// One row for each file with frames to resolve, in the order of their ids.
    pub dsos: Vec<DsoSummary>,
    /// Wall time in seconds, from when all frames were there.
    pub seconds: f64,
}

/// What was done for one file.
#[derive(Clone, Debug)]
pub struct DsoSummary {
    /// The file.
    pub dso: DsoId,
    /// Its path.
    pub path: String,
    /// Files that symbols or lines were read from: the file itself, separate debug files.
    pub sources: Vec<PathBuf>,
    /// Frames that had no lines before.
    pub frames: usize,
    /// Of these, frames that now have a function.
    pub named: usize,
    /// Of these, frames that now have a source line.
    pub lined: usize,
    /// Inlined calls that were found in them.
    pub inlined: usize,
    /// Symbols of functions in the tables that were read.
    pub functions: usize,
    /// What is missing, and why.
    pub missing: Vec<Missing>,
    /// Seconds of processor time spent on it.
    pub seconds: f64,
}

impl DsoSummary {
    pub(crate) fn new(dso: DsoId, path: &str) -> Self {
        Self {
            dso,
            path: path.to_owned(),
            sources: Vec::new(),
            frames: 0,
            named: 0,
            lined: 0,
            inlined: 0,
            functions: 0,
            missing: Vec::new(),
            seconds: 0.0,
        }
    }
}

/// Why names or lines of a file are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The file, or a part of it, could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: String,
    },
    /// Another file now is where the recorded one was.
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Not an ELF file, or a damaged one.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        error: String,
    },
    /// The file is stripped: only exported functions have names, or none.
    NoSymbols,
    /// Neither the file nor a separate debug file has DWARF.
    NoDebugInfo,
    /// The kernel shows no addresses to this user.
    KernelHidden,
    /// The profile was recorded under another kernel than the one that runs.
    OtherKernel {
        /// The recorded one.
        recorded: String,
    },
    /// The just-in-time compiler wrote no map of its code.
    NoPerfMap {
        /// Where it would be.
        path: PathBuf,
    },
    /// There is such a map, but of somebody else, who may have made it up.
    NotOwned {
        /// Where it is.
        path: PathBuf,
        /// Whose it would have to be, unless it is root's.
        owner: u32,
    },
    /// A debuginfod server did not give the file.
    Download {
        /// Where from.
        url: String,
        /// What happened.
        error: String,
    },
    /// There was no memory for the debug information: names are those of the symbol tables.
    NoRoom {
        /// How many bytes it takes.
        bytes: u64,
    },
    /// A part was skipped: it is larger than any that a compiler writes, or took too long, or its parser failed.
    Skipped {
        /// What and why.
        what: String,
    },
}

impl Missing {
    /// What the user can do about it; empty if nothing.
    pub fn remedy(&self) -> &'static str {
        match self {
            Missing::NoSymbols => "install its debug symbols package or build it without stripping",
            Missing::NoDebugInfo => {
                "build with -g, or install its debug symbols package, or try --debuginfod"
            }
            Missing::KernelHidden => {
                "run as root, or: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
            }
            Missing::NoRoom { .. } => "allow more memory: --max-memory",
            Missing::NoPerfMap { .. } => {
                "let the runtime write one: node --perf-basic-prof, python -X perf, java with perf-map-agent"
            }
            Missing::NotOwned { .. } => "if you trust it, chown it to root",
            Missing::Replaced { .. } => "record again, or put the recorded file back",
            Missing::OtherKernel { .. } => "open the recording under the kernel it was made on",
            Missing::Unreadable { .. }
            | Missing::Malformed { .. }
            | Missing::Download { .. }
            | Missing::Skipped { .. } => "",
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Missing::Replaced { path } => write!(f, "{}: is not the file that was recorded", path.display()),
            Missing::Malformed { path, error } => write!(f, "{}: {error}", path.display()),
            Missing::NoSymbols => write!(f, "no symbol table (stripped)"),
            Missing::NoDebugInfo => write!(f, "no debug information: no lines and no inlined calls"),
            Missing::KernelHidden => write!(f, "the kernel hides its addresses (kptr_restrict)"),
            Missing::OtherKernel { recorded } => write!(f, "recorded under another kernel: {recorded}"),
            Missing::NoPerfMap { path } => write!(f, "no map of JIT code at {}", path.display()),
            Missing::NotOwned { path, owner } => {
                write!(
                    f,
                    "{}: belongs to neither user {owner}, whose process it would be of, nor root",
                    path.display()
                )
            }
            Missing::Download { url, error } => write!(f, "{url}: {error}"),
            Missing::NoRoom { bytes } => write!(
                f,
                "no lines and no inlined calls: its debug information takes {} MiB of memory, which are not left",
                bytes.div_ceil(1 << 20)
            ),
            Missing::Skipped { what } => write!(f, "{what}"),
        }
    }
}
