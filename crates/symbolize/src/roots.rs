//! Root folders of processes in containers, held open while a profile is made: a process may be gone, and its container's files with it, by the time
//! that names are looked for.
//!
//! Not here: what is looked for in them.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_process::path_of_open;
use plumb_profile::Profile;

use crate::options::Options;
use crate::perf_map::inner_pid;

/// So many are held; of further processes only those that still run are looked at.
const MOST: usize = 64;

/// The root folder of a process, with its mount namespace, which lasts as long as it is open.
#[derive(Debug)]
pub(crate) struct ProcessRoot {
    pid: u32,
    /// Its number in its own pid namespace.
    pub inner_pid: u32,
    root: File,
    _mounts: File,
}

impl ProcessRoot {
    /// That of a process. `None`: it has ours, or may not be looked at.
    fn open(pid: u32, options: &Options) -> Option<Self> {
        let (root, process) = (other_root(pid, options)?, options.process(pid));
        let inner_pid = inner_pid(&process).unwrap_or(pid);
        let (root, mounts) = (File::open(root).ok()?, File::open(process.join("ns/mnt")).ok()?);
        Some(Self { pid, inner_pid, root, _mounts: mounts })
    }

    /// A path to it, as long as it is held.
    pub fn path(&self) -> PathBuf {
        path_of_open(&self.root)
    }
}

/// The root folder of a process that runs, if it is another than ours.
pub(crate) fn other_root(pid: u32, options: &Options) -> Option<PathBuf> {
    let process = options.process(pid);
    let root = process.join("root/.");
    let place = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let mounts = |process: &Path| place(&process.join("ns/mnt"));
    let is_ours =
        mounts(&process)? == mounts(Path::new("/proc/self"))? && place(&root)? == place(&options.root)?;
    (!is_ours).then_some(root)
}

/// Roots of processes of a profile that is being made.
#[derive(Debug, Default)]
pub(crate) struct ProcessRoots {
    held: Vec<Arc<ProcessRoot>>,
    /// Files of the profile whose processes' users were looked at.
    pub seen_files: usize,
    /// Mappings of the profile that were looked at.
    seen: usize,
}

impl ProcessRoots {
    /// Opens those of processes that have mapped something since the last time: a process may have gone into its container since.
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

    /// Those of some processes.
    pub fn of(&self, pids: &[u32]) -> Vec<Arc<ProcessRoot>> {
        self.held.iter().filter(|held| pids.contains(&held.pid)).cloned().collect()
    }

    /// Closes all.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}
