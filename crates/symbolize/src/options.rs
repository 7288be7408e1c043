//! The options of symbolization ([`Options`]) and its progress messages ([`Progress`]).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plumb_process::RecordedFiles;
use plumb_profile::{DsoId, InstructionSet, Profile};

/// The information to resolve and the places to search. [`Options::default`] uses this machine and no other.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to look up source lines and inlined calls, which costs more than names alone.
    pub lines: bool,
    /// Additional paths of the recorded file, tried before its own: `/proc/self/fd/7` for a
    /// file that the recorder holds open, `/proc/1234/map_files/5581e000-5582a000` for one that was deleted.
    pub images: HashMap<DsoId, Vec<PathBuf>>,
    /// The end of the recording: a file without build id that was modified later does not match. `None`: taken from
    /// the profile if it has one.
    pub recorded_until: Option<SystemTime>,
    /// The places of the recorded machine's files, and their architecture. Replaced by what the profile says.
    pub files: RecordedFiles,
    /// Directories with separate debug files: `.build-id/xx/yyyy.debug` and copies of the file tree.
    pub debug_roots: Vec<PathBuf>,
    /// Whether kernel frames may be resolved from the running kernel (only if it is the recorded one).
    pub kernel: bool,
    /// Path of the kernel's symbol table.
    pub kallsyms: PathBuf,
    /// Path of the kernel's memory as an ELF file, from which its code is read.
    pub kcore: PathBuf,
    /// Directory where just-in-time compilers write `perf-PID.map`.
    pub perf_maps: PathBuf,
    /// User ids by pid, for processes that may have exited: their maps are trusted. [`Session`](crate::Session) records them as it sees them.
    pub users: HashMap<u32, u32>,
    /// Path of the proc file system, to reach the files of processes in other mount namespaces.
    pub proc: PathBuf,
    /// Whether to ask debuginfod servers for files missing here.
    pub debuginfod: bool,
    /// URLs of debuginfod servers; if empty, those in `DEBUGINFOD_URLS`.
    pub debuginfod_urls: Vec<String>,
    /// Directory for downloads; `None`: that of debuginfod's own client,
    /// `$XDG_CACHE_HOME/debuginfod_client`.
    pub debuginfod_cache: Option<PathBuf>,
    /// Time limit for all downloads together.
    pub debuginfod_time: Duration,
    /// Directory of the user's cache, below which the kernel's symbols and decompressed debug information are kept between
    /// runs; `None`: no cache.
    pub cache: Option<PathBuf>,
    /// Number of files processed in parallel; 0: one per CPU.
    pub threads: usize,
    /// Approximate memory limit for open files, in bytes. A larger file is processed alone. `None`: no limit.
    pub max_memory: Option<u64>,
    /// Resident memory limit for the whole process, in bytes: if debug information does not fit, only symbol tables are
    /// read, and [`Missing::NoRoom`](crate::Missing::NoRoom) is reported. `None`: no limit.
    pub max_resident: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lines: true,
            images: HashMap::new(),
            recorded_until: None,
            files: RecordedFiles::default(),
            debug_roots: vec![PathBuf::from("/usr/lib/debug")],
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
    /// Returns these options for a profile: with the places of its machine's files ([`Profile::symfs`]), and their architecture.
    pub(crate) fn for_profile(&self, profile: &Profile) -> Self {
        let mut options = self.clone();
        let machines = InstructionSet::machines_of(&profile.meta.arch);
        options.files = RecordedFiles { below: profile.symfs.as_deref().map(Arc::from), machines };
        if let Some(below) = &options.files.below {
            options.debug_roots.insert(0, below.join("usr/lib/debug"));
            options.perf_maps = below.join("tmp");
        }
        options
    }

    /// Returns the directory of a process below [`Options::proc`]; that of another thread if its main thread has exited.
    pub(crate) fn process(&self, pid: u32) -> PathBuf {
        self.proc.join(plumb_process::living_thread(pid).to_string())
    }
}

/// A progress message for the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A file is done.
    File {
        /// Path of the file.
        path: String,
        /// Number of files done so far, including this one.
        done: usize,
        /// Number of files with frames to resolve.
        total: usize,
    },
    /// A debug file is being downloaded.
    Download {
        /// URL of the download.
        url: String,
        /// Bytes downloaded so far.
        bytes: u64,
    },
}
