//! Opens exactly the file that is mapped, even while programs are deleted and replaced as they run.
//!
//! Tried in turn: the mapping's own link in `/proc/PID/map_files`, which is the mapped file by definition; the path
//! as seen by the process or its parent, for example in a container; the path as we see it. Paths only count if the
//! inode is the mapped one. A deleted program has no path any more, but its process runs it, and another process may have it open.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::elf::Elf;
use crate::identity::{DELETED, FileKey};
use crate::pid::living_thread;

/// Largest number of descriptors of a process that are examined.
const MAX_DESCRIPTORS: usize = 1024;

/// The origin of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOrigin {
    /// In this process, at these addresses.
    Process {
        /// The process.
        pid: u32,
        /// The addresses.
        range: Range<u64>,
        /// The parent process, which usually sees files at the same paths; 0: not known.
        parent: u32,
    },
    /// A process of some recording: only path and build id can lead to the file.
    Recorded(RecordedFiles),
}

/// The places where the files of a recording may be, and the files that may be meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    /// Directory with the files of the recorded machine, if they are not at their own paths. Then nothing is looked up at those.
    pub below: Option<Arc<Path>>,
    /// ELF machines (`e_machine`) of code that the recorded machine runs; empty: any.
    pub machines: &'static [u16],
}

impl RecordedFiles {
    /// Opens the file of `key`.
    fn open(&self, key: &FileKey, path: &Path) -> Result<File, OpenError> {
        let mut outcome = Err(OpenError::NotFound);
        for place in recorded_paths(self.below.as_deref(), path) {
            outcome = better(outcome, open_checked(key, &place).and_then(|file| self.check_machine(file)));
        }
        outcome
    }

    /// Files of the same path on machines of two architectures differ.
    fn check_machine(&self, file: File) -> Result<File, OpenError> {
        let is_right = |elf: Elf| self.may_run(elf.machine);
        if Elf::read(&file).map_or(true, is_right) { Ok(file) } else { Err(OpenError::Replaced) }
    }

    /// Whether the recorded machine runs code for this ELF machine.
    pub fn may_run(&self, machine: u16) -> bool {
        self.machines.is_empty() || self.machines.contains(&machine)
    }
}

/// Returns the paths where the file that was recorded at `path` may be: its own, or those in a directory with the files of the recorded
/// machine, which has them in a tree or side by side.
pub fn recorded_paths(below: Option<&Path>, path: &Path) -> Vec<PathBuf> {
    let Some(below) = below else { return vec![path.into()] };
    let name = path.file_name().map(|name| below.join(name));
    std::iter::once(below.join(path.strip_prefix("/").unwrap_or(path))).chain(name).collect()
}

/// The reason why a mapped file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The file is gone, and so is its process.
    NotFound,
    /// Permission denied.
    Denied,
    /// The path leads to another file than the mapped one.
    Replaced,
    /// The path leads to a device, a pipe or the like.
    NotRegular,
    /// The file is in a directory where anybody may create one, and its owner is not trusted.
    NotOwned {
        /// Owner of the file.
        uid: u32,
    },
    /// Reading failed with this error number.
    Io(i32),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NotFound => f.write_str("the file is gone"),
            OpenError::Denied => f.write_str("permission denied"),
            OpenError::Replaced => f.write_str("the file was replaced by another one"),
            OpenError::NotRegular => f.write_str("not a regular file"),
            OpenError::NotOwned { uid } => write!(f, "belongs to user {uid}, who is not believed"),
            OpenError::Io(number) => io::Error::from_raw_os_error(*number).fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenError::NotFound,
            io::ErrorKind::PermissionDenied => OpenError::Denied,
            _ => OpenError::Io(error.raw_os_error().unwrap_or(0)),
        }
    }
}

/// Opens the file described by `key`, as mapped at `place`: exactly that file, or none.
pub fn open_mapped(key: &FileKey, place: &FileOrigin) -> Result<File, OpenError> {
    let path = Path::new(std::ffi::OsStr::from_bytes(&key.path));
    if !path.is_absolute() {
        return Err(OpenError::NotFound);
    }
    let mut outcome = Err(OpenError::NotFound);
    if let FileOrigin::Process { pid, range, parent } = place {
        let linked = |pid: u32| {
            let link = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
            open_regular(Path::new(&link)).and_then(|file| check_link(key, file))
        };
        outcome = linked(*pid);
        // A process that lived half a millisecond is gone by now, its parent is not.
        for process in [*pid, *parent] {
            if outcome.is_err() && process != 0 {
                let living = living_thread(process);
                if process == *pid && living != process {
                    outcome = linked(living);
                }
                outcome = better(outcome, open_checked(key, &seen_by(living, path)));
            }
        }
    }
    if outcome.is_err() {
        let found = match place {
            FileOrigin::Recorded(files) => files.open(key, path),
            FileOrigin::Process { .. } => open_checked(key, path),
        };
        outcome = better(outcome, found);
    }
    // Without the privilege to follow map_files links, access is denied even to links that are gone.
    if let (
        Err(OpenError::NotFound | OpenError::Replaced | OpenError::Denied),
        FileOrigin::Process { pid, parent, .. },
    ) = (&outcome, place)
    {
        outcome = better(outcome, open_held(key, &[*pid, *parent]));
    }
    if outcome.is_err()
        && let Some(id) = &key.build_id
    {
        outcome = better(outcome, open_by_build_id(id));
    }
    outcome
}

impl FileKey {
    /// Removes the " (deleted)" that the kernel appends to the path of a file that has no name any more. It is part of the name where the
    /// path, as process `pid` sees it (0: not known) or as we see it, leads to this file.
    pub fn without_deleted(mut self, pid: u32) -> Self {
        if let Some(path) = self.path.strip_suffix(DELETED)
            && !leads_to(&self, pid)
        {
            self.path = path.into();
        }
        self
    }
}

/// Whether the path of `key` leads to its file, as process `pid` sees it (0: not known) or as we see it.
fn leads_to(key: &FileKey, pid: u32) -> bool {
    let path = Path::new(std::ffi::OsStr::from_bytes(&key.path));
    let is_it =
        |path: &Path| std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && is_inode_of(key, &meta));
    path.is_absolute() && ((pid != 0 && is_it(&seen_by(living_thread(pid), path))) || is_it(path))
}

/// Returns our path of a file that a process has at `path`, for example in a container.
pub(crate) fn seen_by(pid: u32, path: &Path) -> PathBuf {
    let mut inside = PathBuf::from(format!("/proc/{pid}/root"));
    inside.push(path.strip_prefix("/").unwrap_or(path));
    inside
}

/// Returns a path of an open file, whatever has become of its own: valid as long as the descriptor.
pub fn path_of_open(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the second result if it succeeded or has a better reason than that nothing is there.
fn better(first: Result<File, OpenError>, second: Result<File, OpenError>) -> Result<File, OpenError> {
    match (&first, &second) {
        (_, Ok(_)) | (Err(OpenError::NotFound), _) => second,
        (_, Err(OpenError::Replaced)) => second,
        _ => first,
    }
}

/// Opens a file that one of these processes runs, or has open under the same path: the parent of a deleted program's process had to open it
/// before. Following both links takes permission to trace the process; those in map_files take CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
fn open_held(key: &FileKey, pids: &[u32]) -> Result<File, OpenError> {
    // Without an inode or a build id, only the path would distinguish it from earlier or later files.
    let is_told = key.inode != 0 || key.build_id.is_some();
    for pid in pids.iter().filter(|&&pid| pid != 0 && is_told).map(|&pid| living_thread(pid)) {
        if let Ok(file) = open_checked(key, Path::new(&format!("/proc/{pid}/exe"))) {
            return Ok(file);
        }
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for descriptor in descriptors.flatten().take(MAX_DESCRIPTORS) {
            let link = descriptor.path();
            let is_same = |linked: PathBuf| {
                let linked = linked.as_os_str().as_bytes();
                *linked == *key.path || linked.strip_suffix(DELETED) == Some(&key.path)
            };
            if std::fs::read_link(&link).is_ok_and(is_same)
                && let Ok(file) = open_checked(key, &link)
            {
                return Ok(file);
            }
        }
    }
    Err(OpenError::NotFound)
}

/// Opens a regular file. Checks before opening, because opening a device or a pipe can have side effects.
fn open_regular(path: &Path) -> Result<File, OpenError> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(OpenError::NotRegular);
    }
    Ok(File::open(path)?)
}

/// Checks the file behind a map_files link: by the time the link is followed something else may be mapped there, or, after an exec, another program.
/// The device is ignored: overlayfs and btrfs report different ones for a mapping and in stat(2), and map_files leads to
/// an overlay's lower file.
fn check_link(key: &FileKey, file: File) -> Result<File, OpenError> {
    if is_inode_of(key, &file.metadata()?) { check_build_id(key, file) } else { Err(OpenError::Replaced) }
}

fn open_checked(key: &FileKey, path: &Path) -> Result<File, OpenError> {
    let file = open_regular(path)?;
    if !is_inode_of(key, &file.metadata()?) {
        return Err(OpenError::Replaced);
    }
    check_build_id(key, file)
}

/// Compares inodes. Devices are not compared, for the reason above: this could only go wrong if two different files with the same path and
/// inode number on different devices followed each other. The highest bits are ignored,
/// where overlayfs encodes the layer of a file (`xino` in Documentation/filesystems/overlayfs.rst).
fn is_inode_of(key: &FileKey, meta: &Metadata) -> bool {
    const LAYER_BITS: u32 = 8;
    key.inode == 0 || key.inode << LAYER_BITS == meta.ino() << LAYER_BITS
}

fn check_build_id(key: &FileKey, file: File) -> Result<File, OpenError> {
    match &key.build_id {
        Some(expected) if Elf::read(&file).ok().and_then(|elf| elf.build_id).as_ref() != Some(expected) => {
            Err(OpenError::Replaced)
        }
        _ => Ok(file),
    }
}

/// Opens a file from the directories where perf and distributions store whole files by build id.
fn open_by_build_id(id: &[u8]) -> Result<File, OpenError> {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at_checked(2).ok_or(OpenError::NotFound)?;
    let mut places = vec![PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}"))];
    if let Some(home) = std::env::var_os("HOME") {
        places.push(Path::new(&home).join(format!(".debug/.build-id/{first}/{rest}/elf")));
    }
    let key = FileKey { build_id: Some(id.into()), ..FileKey::of_path(b"") };
    places.iter().map(|path| open_checked(&key, path)).find(Result::is_ok).unwrap_or(Err(OpenError::NotFound))
}
