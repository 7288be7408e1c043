//! Results and failures of symbolization by file, with reasons: [`Summary`].

use std::fmt;
use std::path::PathBuf;

use plumb_profile::DsoId;

/// The results of [`symbolize`](crate::symbolize).
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// One row for each file with frames to resolve, by id.
    pub dsos: Vec<DsoSummary>,
    /// Wall time in seconds, from when all frames were known.
    pub seconds: f64,
}

/// The results for one file.
#[derive(Clone, Debug)]
pub struct DsoSummary {
    /// Id of the file.
    pub dso: DsoId,
    /// Path of the file.
    pub path: String,
    /// Files that symbols or lines were read from: the file itself, separate debug files.
    pub sources: Vec<PathBuf>,
    /// Number of frames that had no lines before.
    pub frames: usize,
    /// Number of these that now have a function.
    pub named: usize,
    /// Number of these that now have a source line.
    pub lined: usize,
    /// Number of inlined calls found in them.
    pub inlined: usize,
    /// Number of function symbols in the tables that were read.
    pub functions: usize,
    /// Missing information, with reasons.
    pub missing: Vec<Missing>,
    /// CPU time in seconds.
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

/// The reason why names or lines of a file are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The file, or a part of it, could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error message.
        error: String,
    },
    /// Nothing is at the recorded path.
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// The recorded file was replaced by another one.
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Not an ELF file, or a damaged one.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error and its location.
        error: String,
    },
    /// The file is stripped: only exported functions have names, or none.
    NoSymbols,
    /// Neither the file nor a separate debug file has DWARF.
    NoDebugInfo,
    /// The kernel hides addresses from this user.
    KernelHidden,
    /// The profile was recorded under another kernel than the running one.
    OtherKernel {
        /// The recorded one.
        recorded: String,
    },
    /// The just-in-time compiler wrote no map of its code.
    NoPerfMap {
        /// The expected path.
        path: PathBuf,
    },
    /// The map belongs to another user, who may have forged it.
    NotOwned {
        /// Path of the map.
        path: PathBuf,
        /// The required owner, unless root owns the map.
        owner: u32,
    },
    /// A debuginfod server did not provide the file.
    Download {
        /// URL of the download.
        url: String,
        /// The error message.
        error: String,
    },
    /// There was not enough memory for the debug information: names come from the symbol tables.
    NoRoom {
        /// Memory needed, in bytes.
        bytes: u64,
    },
    /// A part was skipped: it is larger than compilers write, took too long, or crashed its parser.
    Skipped {
        /// The part and the reason.
        what: String,
    },
}

impl Missing {
    /// Returns advice for the user; empty if there is none.
    pub fn remedy(&self) -> &'static str {
        match self {
            Missing::NoSymbols => "install its debug symbols package or build it without stripping",
            Missing::NoDebugInfo => {
                "build with -g, or install its debug symbols package, or try --debuginfod"
            }
            Missing::KernelHidden => {
                "run as root, or: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
            }
            Missing::NoRoom { .. } => "record again with a larger --max-memory",
            Missing::NoPerfMap { .. } => {
                "let the runtime write one: node --perf-basic-prof, python -X perf, java with perf-map-agent"
            }
            Missing::NotOwned { .. } => "if you trust it, chown it to root",
            Missing::Absent { .. } => "if the file is elsewhere, name the directory that has it: --symfs DIR",
            Missing::Replaced { .. } => {
                "record again, or name the directory that has the recorded file: --symfs DIR"
            }
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
            Missing::Absent { path } => write!(f, "{}: no such file", path.display()),
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
