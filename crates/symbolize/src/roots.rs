//! Root directories of processes in containers, held open during a recording: when names are looked up, a process may be gone, and its
//! container's files with it.
//!
//! Elsewhere: the files looked up in them.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_process::path_of_open;
use plumb_profile::Profile;

use crate::options::Options;
use crate::perf_map::inner_pid;

/// Largest number held; further processes are only consulted while they run.
const MOST: usize = 64;

/// The root directory of a process, with its mount namespace, which lasts as long as it is open.
#[derive(Debug)]
pub(crate) struct ProcessRoot {
    /// Process id here.
    pub pid: u32,
    /// Process id in its own pid namespace.
    pub inner_pid: u32,
    root: File,
    _mounts: File,
}

impl ProcessRoot {
    /// Opens the root of a process. `None`: it is the same as ours, or access is denied.
    fn open(pid: u32, options: &Options) -> Option<Self> {
        let (root, process) = (other_root(pid, options)?, options.process(pid));
        let inner_pid = inner_pid(&process).unwrap_or(pid);
        let (root, mounts) = (File::open(root).ok()?, File::open(process.join("ns/mnt")).ok()?);
        Some(Self { pid, inner_pid, root, _mounts: mounts })
    }

    /// Returns a path to it, valid as long as it is held.
    pub fn path(&self) -> PathBuf {
        path_of_open(&self.root)
    }
}

/// Returns the root directory of a running process, if it differs from ours.
pub(crate) fn other_root(pid: u32, options: &Options) -> Option<PathBuf> {
    let process = options.process(pid);
    let root = process.join("root/.");
    let place = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let mounts = |process: &Path| place(&process.join("ns/mnt"));
    let is_ours =
        mounts(&process)? == mounts(Path::new("/proc/self"))? && place(&root)? == place(Path::new("/"))?;
    (!is_ours).then_some(root)
}

/// Roots of the processes of a profile being recorded.
#[derive(Debug, Default)]
pub(crate) struct ProcessRoots {
    held: Vec<Arc<ProcessRoot>>,
    /// Number of files of the profile whose processes' users were determined.
    pub seen_files: usize,
    /// Number of mappings of the profile that were processed.
    seen: usize,
}

impl ProcessRoots {
    /// Opens the roots of processes with new mappings since the last call: a process may have entered its container since.
    pub fn note(&mut self, profile: &Profile, options: &Options) {
        let mut last = None;
        for mapping in profile.mappings.iter().skip(self.seen) {
            let pid = profile.processes[mapping.process].pid;
            if last.replace(pid) == Some(pid) || self.held.len() >= MOST {
                continue;
            }
            if let Some(root) = ProcessRoot::open(pid, options) {
                self.held.retain(|held| held.pid != pid);
                self.held.push(Arc::new(root));
            }
        }
        self.seen = profile.mappings.len();
    }

    /// Returns the roots held for some processes.
    pub fn of(&self, pids: &[u32]) -> Vec<Arc<ProcessRoot>> {
        self.held.iter().filter(|held| pids.contains(&held.pid)).cloned().collect()
    }

    /// Closes all roots.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}
