//! What to do, and where to look: [`Options`], and how it is going: [`Progress`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use plumb_profile::DsoId;

/// What to resolve and where to look for it. [`Options::default`] looks at this machine and at no other.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to look for source lines and inlined calls, which costs more than names alone.
    pub lines: bool,
    /// Places where the recorded file may be found besides its own path, tried first: `/proc/self/fd/7` for a
    /// file that the recorder holds open, `/proc/1234/map_files/5581e000-5582a000` for one that was deleted.
    pub images: HashMap<DsoId, Vec<PathBuf>>,
    /// When the recording ended: a file without build id that was written later is another one. `None`: taken from
    /// the profile if it says so.
    pub recorded_until: Option<SystemTime>,
    /// Folders with separate debug files: `.build-id/xx/yyyy.debug` and copies of the file tree.
    pub debug_roots: Vec<PathBuf>,
    /// Folder under which the paths of files are looked up, `/` if the profile is of this machine.
    pub root: PathBuf,
    /// Whether kernel frames may be resolved from the running kernel (only if it is the one recorded).
    pub kernel: bool,
    /// The kernel's symbol table.
    pub kallsyms: PathBuf,
    /// The kernel's memory as an ELF file, to read its code from.
    pub kcore: PathBuf,
    /// Folder where just-in-time compilers leave `perf-PID.map`.
    pub perf_maps: PathBuf,
    /// Users of processes that may be gone by now, by pid: their maps are believed. [`Session`](crate::Session) notes them as it meets them.
    pub users: HashMap<u32, u32>,
    /// Where processes are, to reach the files of those in another mount namespace.
    pub proc: PathBuf,
    /// Ask debuginfod servers for what is missing here.
    pub debuginfod: bool,
    /// URLs of debuginfod servers; if empty those in `DEBUGINFOD_URLS`.
    pub debuginfod_urls: Vec<String>,
    /// Where downloads are kept; `None`: where debuginfod's own client keeps them,
    /// `$XDG_CACHE_HOME/debuginfod_client`.
    pub debuginfod_cache: Option<PathBuf>,
    /// Longest time that all downloads together may take.
    pub debuginfod_time: Duration,
    /// Folder of the user's cache, below which the kernel's symbols and inflated debug information are kept from run to
    /// run; `None`: they aren't.
    pub cache: Option<PathBuf>,
    /// Files worked on side by side; 0: as many as there are processors.
    pub threads: usize,
    /// About how many bytes of memory the files that are open may take. A larger file is worked on alone. `None`: no bound.
    pub max_memory: Option<u64>,
    /// Bytes of memory that this process is to stay below as a whole: where debug information doesn't fit, symbol tables alone are
    /// read, and that is said ([`Missing::NoRoom`](crate::Missing::NoRoom)). `None`: no bound.
    pub max_resident: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lines: true,
            images: HashMap::new(),
            recorded_until: None,
            debug_roots: vec![PathBuf::from("/usr/lib/debug")],
            root: PathBuf::from("/"),
            kernel: true,
            kallsyms: PathBuf::from("/proc/kallsyms"),
            kcore: PathBuf::from("/proc/kcore"),
            perf_maps: PathBuf::from("/tmp"),
            users: HashMap::new(),
            proc: PathBuf::from("/proc"),
            debuginfod: false,
            debuginfod_urls: Vec::new(),
            debuginfod_cache: None,
            debuginfod_time: Duration::from_secs(60),
            cache: plumb_process::cache_folder(),
            threads: 0,
            max_memory: None,
            max_resident: None,
        }
    }
}

impl Options {
    /// Folder of a process below [`Options::proc`]; that of another thread if its main thread has ended.
    pub(crate) fn process(&self, pid: u32) -> PathBuf {
        self.proc.join(plumb_process::living_thread(pid).to_string())
    }
}

/// What is going on, for a line on the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A file is done.
    File {
        /// Its path.
        path: String,
        /// Files done so far, this one included.
        done: usize,
        /// All files with frames to resolve.
        total: usize,
    },
    /// A debug file is being fetched.
    Download {
        /// Where from.
        url: String,
        /// Bytes so far.
        bytes: u64,
    },
}
