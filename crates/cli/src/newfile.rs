//! Files that commands write: whole or not at all.
//!
//! A file is written without a name, then named beside its place and renamed, so that a full disk or a signal leaves what was there and nothing
//! else. Where the file system has no files without a name, it is beside its place from the start. What can't be renamed to
//! (devices, named pipes, descriptors) is written as it is; a directory is refused; a symbolic link stays, and the file that it leads to
//! is the one that is replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use crate::terminal::stdout_bytes;

/// So many links lead from one to the next at most, as in the kernel.
const MAX_LINKS: usize = 40;
/// Bytes of a file's name that the one beside it takes up: a name has 255 at most.
const MAX_NAME: usize = 200;

/// Where an `-o` leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file, or the place of one to be, after all symbolic links.
    File(PathBuf),
    /// A device, a named pipe or an inherited descriptor.
    Stream(PathBuf),
    /// Standard output: `-`, `/dev/stdout` and the like.
    Stdout,
}

/// Whether nobody gave this program a standard output. Rust's runtime has opened /dev/null in its place, to read and write; a shell opens it to
/// write only.
fn is_stdout_closed() -> bool {
    let is_null = fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    let flags = fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags =
        flags.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    is_null && flags.is_some_and(|flags| flags & 0o3 == 0o2)
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As the umask says, or as the file said whose place it takes.
    Usual,
    /// Its owner alone.
    Private,
}

impl Destination {
    /// Where `path` leads. A directory, and what the kernel doesn't let us look at, is refused.
    pub fn of(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout);
        }
        let name = || format!("cannot write {}", path.display());
        // Follows links as far as the kernel thinks it safe.
        let meta = match fs::metadata(path) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(name),
        };
        ensure!(
            !meta.as_ref().is_some_and(fs::Metadata::is_dir) && !path.as_os_str().as_bytes().ends_with(b"/"),
            "cannot write {}: it is a directory; name a file in it",
            path.display()
        );
        let found = follow(path).with_context(name)?;
        if let Destination::File(file) = &found {
            let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
            let at_end = fs::symlink_metadata(file).ok().map(identity);
            let is_file = meta.as_ref().is_none_or(fs::Metadata::is_file);
            if at_end != meta.map(identity) {
                bail!("{}: the link was changed meanwhile", name());
            }
            if !is_file {
                return Ok(Destination::Stream(file.clone()));
            }
        }
        Ok(found)
    }

    /// Makes sure that it can be written, before work is done for it.
    pub fn check(path: &Path, access: Access) -> Result<Self> {
        let found = Self::of(path)?;
        ensure!(
            found != Destination::Stdout || !is_stdout_closed(),
            "cannot write to standard output: it is closed; name a file, or redirect it"
        );
        if let Destination::File(file) = &found {
            NewFile::beside(file, access).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(found)
    }
}

/// Follows symbolic links by name. Those of /proc lead to what a process has open, which may have no name.
fn follow(path: &Path) -> io::Result<Destination> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let to = match fs::read_link(&path) {
            Ok(to) => to,
            // No link, or nothing.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(Destination::File(path));
            }
            Err(error) => return Err(error),
        };
        let folder = fs::canonicalize(folder_of(&path))?;
        if folder.starts_with("/proc") {
            let own = fs::canonicalize("/proc/self/fd").unwrap_or_default();
            let is_stdout = folder == own && path.file_name().is_some_and(|name| name == "1");
            return Ok(if is_stdout { Destination::Stdout } else { Destination::Stream(path) });
        }
        path = folder.join(to);
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is being written. Unless it is committed, what was in its place stays, and of it nothing.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Beside the file to be, from the start or once it is whole.
    Beside { temporary: PathBuf, has_name: bool, to: PathBuf, old: Option<File> },
    /// In the file itself: its directory takes no other.
    Within,
    /// Where nothing is ever replaced.
    Stream,
}

impl NewFile {
    /// One for where `path` leads.
    pub fn at(path: &Path) -> Result<Self> {
        Self::to(&Destination::of(path)?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// One for a destination.
    pub fn to(destination: &Destination) -> io::Result<Self> {
        let file = match destination {
            Destination::File(path) => return Self::beside(path, Access::Usual),
            // What was written there by others stays.
            Destination::Stream(path) => OpenOptions::new().append(true).open(path)?,
            Destination::Stdout => stdout_bytes()?.as_fd().try_clone_to_owned()?.into(),
        };
        Ok(Self { file, place: Place::Stream })
    }

    /// One that takes the place of `to`, which is no link.
    pub fn beside(to: &Path, access: Access) -> io::Result<Self> {
        // A file that may not be written isn't replaced either; a private one is put aside by the caller.
        let old = match OpenOptions::new().write(true).open(to) {
            _ if access == Access::Private => None,
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let temporary = temporary(to)?;
        // In a folder that all may write to, somebody's link of this name must not be followed.
        let _ = fs::remove_file(&temporary);
        let mode = if access == Access::Private || old.is_some() { 0o600 } else { 0o666 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode);
        let nameless = options.clone().custom_flags(OFlags::TMPFILE.bits() as i32).open(folder_of(to));
        let (opened, has_name) = match nameless {
            Ok(file) => (Ok(file), false),
            Err(_) => (options.create_new(true).open(&temporary), true),
        };
        match (opened, old) {
            (Ok(file), old) => {
                Ok(Self { file, place: Place::Beside { temporary, has_name, to: to.to_owned(), old } })
            }
            (Err(_), Some(file)) => Ok(Self { file, place: Place::Within }),
            (Err(error), None) => Err(error),
        }
    }

    /// Puts it in its place.
    pub fn commit(mut self) -> io::Result<()> {
        let Place::Beside { temporary, has_name, to, old } = &mut self.place else {
            return match self.place {
                Place::Within => self.file.stream_position().and_then(|end| self.file.set_len(end)),
                _ => Ok(()),
            };
        };
        if let Some(old) = old {
            let meta = old.metadata()?;
            // Only root may give it to its owner, and who may do neither has a file of his own.
            let _ = fchown(&self.file, Some(meta.uid()), Some(meta.gid()));
            self.file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o777))?;
        }
        let named = if *has_name { Ok(()) } else { name_file(&self.file, temporary) };
        match (named.and_then(|()| fs::rename(&*temporary, &*to)), old) {
            // It is mounted there by itself, or others own the directory.
            (Err(_), Some(old)) => {
                self.file.rewind()?;
                let bytes = io::copy(&mut self.file, old)?;
                old.set_len(bytes)
            }
            (renamed, _) => renamed,
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl io::Seek for NewFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Place::Beside { temporary, .. } = &self.place {
            // After a rename there is nothing of this name.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Gives a name to a file without one.
fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)
        // Without /proc. Before Linux 6.10 it needs CAP_DAC_READ_SEARCH.
        .or_else(|_| linkat(file, "", CWD, path, AtFlags::EMPTY_PATH))
        .map_err(io::Error::from)
}

/// Where files may be that nobody named, best first; any of them may be missing or full.
pub fn temporary_folders() -> [PathBuf; 4] {
    [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()]
}

/// What a path is called in a message.
pub fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() }
}

/// Writes all of a file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = NewFile::at(path)?;
    file.write_all(bytes)
        .and_then(|()| file.commit())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A name beside a file that no other thread and no other process uses.
fn temporary(beside: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = beside.file_name().ok_or(ErrorKind::InvalidInput)?.as_bytes();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let end = format!(".{}-{number}.tmp", std::process::id());
    let name = [b".", &name[..name.len().min(MAX_NAME)], end.as_bytes()].concat();
    Ok(beside.with_file_name(std::ffi::OsString::from_vec(name)))
}

#[cfg(test)]
mod tests;
