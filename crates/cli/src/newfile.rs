//! Output files that are written completely or not at all.
//!
//! A file is written without a name, then linked next to its destination and renamed, so that a full disk or a signal leaves the old file
//! and nothing else. Where the file system does not support nameless files, a temporary file next to the destination is used from the start.
//! Destinations that can't be replaced (devices, named pipes, descriptors) are written directly; a directory is refused; a symbolic link stays,
//! and the file that it points to is replaced.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Seek as _, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use crate::terminal::stdout_bytes;

/// Longest chain of symbolic links, as in the kernel.
const MAX_LINKS: usize = 40;
/// Longest file name for which a temporary name is derived: names have at most 255 bytes.
const MAX_NAME: usize = 200;
/// Mode bits of users that are neither the owner nor in the group.
#[cfg(any(feature = "agent", feature = "server"))]
const OTHERS: u32 = 0o007;

/// The destination of an `-o` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file that exists or will be created, after all symbolic links.
    File(PathBuf),
    /// A device, a named pipe or an inherited descriptor.
    Stream(PathBuf),
    /// Standard output: `-`, `/dev/stdout` and the like.
    Stdout,
}

/// Whether this program was started without a standard output. Rust's runtime then opens /dev/null for reading and writing; a shell would open it
/// for writing only.
fn is_stdout_closed() -> bool {
    let is_null = fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    let flags = fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags =
        flags.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    is_null && flags.is_some_and(|flags| flags & 0o3 == 0o2)
}

/// Permissions of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Set by the umask, or copied from the file that is replaced.
    Usual,
    /// Readable by the owner only.
    Private,
}

impl Destination {
    /// Resolves `path`. Fails for a directory, and for a path that can't be accessed.
    pub fn of(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout);
        }
        let name = || format!("cannot write {}", path.display());
        // Follows links as far as the kernel considers it safe.
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

    /// Checks that the destination is writable, before the work for it starts.
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

/// Follows symbolic links by name. Links in /proc point to open files, which may have no name.
fn follow(path: &Path) -> io::Result<Destination> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let to = match fs::read_link(&path) {
            Ok(to) => to,
            // Not a link, or nothing there.
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

/// Replacement for a file, under a temporary name until it is committed. Dropping it uncommitted removes it and leaves the old file as it was.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A temporary file next to the destination, named from the start or at the commit.
    Beside { temporary: PathBuf, has_name: bool, to: PathBuf, old: Option<File> },
    /// Writes directly to the existing file: its directory allows no new files.
    Within,
    /// A stream, which replaces nothing.
    Stream,
}

impl NewFile {
    /// Creates the file for `path`.
    pub fn at(path: &Path) -> Result<Self> {
        Self::to(&Destination::of(path)?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Creates the file for a destination.
    pub fn to(destination: &Destination) -> io::Result<Self> {
        let file = match destination {
            Destination::File(path) => return Self::beside(path, Access::Usual),
            // Appends, so that output of other programs stays.
            Destination::Stream(path) => OpenOptions::new().append(true).open(path)?,
            Destination::Stdout => stdout_bytes()?.as_fd().try_clone_to_owned()?.into(),
        };
        Ok(Self { file, place: Place::Stream })
    }

    /// Creates a file that replaces `to`, which must not be a link.
    pub fn beside(to: &Path, access: Access) -> io::Result<Self> {
        // A read-only file isn't replaced; the caller moves a private one away.
        let old = match OpenOptions::new().write(true).open(to) {
            _ if access == Access::Private => None,
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let temporary = temporary(to)?;
        // In a world-writable directory, a link that somebody made with this name must not be followed.
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

    /// Moves the file to its destination.
    pub fn commit(mut self) -> io::Result<()> {
        let Place::Beside { temporary, has_name, to, old } = &mut self.place else {
            return match self.place {
                Place::Within => self.file.stream_position().and_then(|end| self.file.set_len(end)),
                _ => Ok(()),
            };
        };
        if let Some(old) = old {
            let meta = old.metadata()?;
            // Only root can set the owner; without that right the file belongs to this user.
            let _ = fchown(&self.file, Some(meta.uid()), Some(meta.gid()));
            self.file.set_permissions(Permissions::from_mode(meta.mode() & 0o777))?;
        }
        let named = if *has_name { Ok(()) } else { name_file(&self.file, temporary) };
        match (named.and_then(|()| fs::rename(&*temporary, &*to)), old) {
            // The file is a mount point, or the directory belongs to others.
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
            // After a rename the name does not exist any more.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Links a nameless file into a directory.
fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)
        // Without /proc. Before Linux 6.10 this needs CAP_DAC_READ_SEARCH.
        .or_else(|_| linkat(file, "", CWD, path, AtFlags::EMPTY_PATH))
        .map_err(io::Error::from)
}

/// The text for a path in a message.
pub fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() }
}

/// Writes a complete file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = NewFile::at(path)?;
    file.write_all(bytes)
        .and_then(|()| file.commit())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// An unused name next to a file, unique to this thread and process.
fn temporary(beside: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = beside.file_name().ok_or(ErrorKind::InvalidInput)?.as_bytes();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let end = format!(".{}-{number}.tmp", std::process::id());
    let name = [b".", &name[..name.len().min(MAX_NAME)], end.as_bytes()].concat();
    Ok(beside.with_file_name(std::ffi::OsString::from_vec(name)))
}

/// Restricts files and directories that this process creates from now on to its user, and revokes other users' access to `directory` if it exists.
/// Profiles contain names and paths of all programs.
#[cfg(any(feature = "agent", feature = "server"))]
pub fn keep_private(directory: &Path) {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let Ok(metadata) = fs::metadata(directory) else { return };
    let mode = metadata.permissions().mode();
    if mode & OTHERS != 0
        && let Err(error) = fs::set_permissions(directory, Permissions::from_mode(mode & !OTHERS))
    {
        tracing::warn!(%error, directory = %directory.display(), "other users can read this directory");
    }
}

#[cfg(test)]
mod tests;
