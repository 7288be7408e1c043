//! Puts a recording in place: an older one is kept, nobody but its owner may read it (it holds command lines), and it goes somewhere else
//! when the disk is full.

use std::fs;
use std::io::{self, Cursor, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use plumb_profile::Profile;

use crate::exit;
use crate::newfile::{self, Access, Destination, NewFile};

/// Where a recording is to go.
pub struct Output {
    path: PathBuf,
    destination: Destination,
}

impl Output {
    /// Makes sure, before anything is recorded, that a file can be written there.
    pub fn check(path: &Path) -> Result<Self> {
        let destination =
            Destination::check(path, Access::Private).map_err(|error| match is_refused(&error) {
                true => anyhow!("{}; name another place by -o FILE", exit::message(&error)),
                false => error,
            })?;
        ensure!(
            destination != Destination::Stdout || !io::stdout().is_terminal(),
            "a recording is not for a terminal: name a file, or pipe it to something like plumb report -"
        );
        Ok(Self { path: path.to_owned(), destination })
    }

    /// Whether it goes to standard output, where nothing else may be printed.
    pub fn is_stdout(&self) -> bool {
        self.destination == Destination::Stdout
    }

    /// The file that it is to be, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(path) => Some(path),
            Destination::Stream(_) | Destination::Stdout => None,
        }
    }

    /// Whether it can be written a second time.
    pub fn is_replaceable(&self) -> bool {
        self.file().is_some()
    }

    /// Writes a recording, and keeps an older one as `FILE.old`. If the place doesn't take it, others are tried: a
    /// recording can't be made again.
    pub fn write(&self, profile: &Profile) -> Result<Written> {
        self.write_by(&mut |file| write(profile, file))
    }

    /// Likewise by what writes it to a file, from the beginning.
    pub fn write_by(&self, write: WriteTo<'_>) -> Result<Written> {
        let error = match put(&self.destination, write) {
            Ok(()) => return Ok(Written::at(&self.path, &self.destination, None)),
            Err(error) => error,
        };
        let name = format!("profile-{}.plumb", std::process::id());
        let why = format!("{}: {error:#}", newfile::name(&self.path));
        for folder in newfile::temporary_folders() {
            let path = folder.join(&name);
            let elsewhere = Destination::File(path.clone());
            if put(&elsewhere, write).is_ok() {
                return Ok(Written::at(&path, &elsewhere, Some(why.clone())));
            }
        }
        Err(error.context(format!(
            "the recording is lost: it could not be written to {}",
            newfile::name(&self.path)
        )))
    }
}

/// Writes a recording to a new file, from the beginning.
pub(super) type WriteTo<'a> = &'a mut dyn FnMut(&mut NewFile) -> Result<()>;

/// Writes a recording, and keeps an older one that is a file.
fn put(destination: &Destination, write: WriteTo<'_>) -> Result<()> {
    let Destination::File(path) = destination else {
        let mut file = NewFile::to(destination)?;
        return write(&mut file);
    };
    let mut file = NewFile::beside(path, Access::Private)?;
    write(&mut file)?;
    // A directory may have come to stand there meanwhile, and that is not ours to move.
    if path.is_file() {
        fs::rename(path, old(path)).context("keeping the older recording")?;
    }
    Ok(file.commit()?)
}

/// A recording that is in place.
pub struct Written {
    path: PathBuf,
    destination: Destination,
    bytes: u64,
    /// Why it isn't where it was to be.
    elsewhere: Option<String>,
}

impl Written {
    fn at(path: &Path, destination: &Destination, elsewhere: Option<String>) -> Self {
        let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
        Self { path: path.to_owned(), destination: destination.clone(), bytes, elsewhere }
    }

    /// Puts a newer version of the recording in its place, which is a file.
    pub fn replace_by(&mut self, write: WriteTo<'_>) -> Result<()> {
        let Destination::File(path) = &self.destination else { bail!("no file can be replaced") };
        let mut file = NewFile::beside(path, Access::Private)?;
        write(&mut file)?;
        file.commit()?;
        self.bytes = fs::metadata(&self.path).map_or(0, |meta| meta.len());
        Ok(())
    }

    /// Where it is, and its size in bytes.
    pub fn place(&self) -> (&Path, u64) {
        (&self.path, self.bytes)
    }

    /// Whether it is somewhere else than it was to be: that has to be said.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Where it is, how large, and how to look at it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(reason) = &self.elsewhere {
            text += &format!("{reason}; the recording is in {} instead\nplumb: ", self.path.display());
        }
        if self.destination == Destination::Stdout {
            return text + "the recording went to standard output";
        }
        let command = if self.path == Path::new("profile.plumb") {
            "plumb report".to_owned()
        } else {
            format!("plumb report {}", self.path.display())
        };
        text + &format!(
            "{} ({:.2} MB) written; see it with: {command}",
            self.path.display(),
            self.bytes as f64 / 1e6
        )
    }
}

/// Writes a recording to a file.
pub(super) fn write(profile: &Profile, file: &mut NewFile) -> Result<()> {
    // It is small, and so a full disk is met once and not somewhere between the parts of an archive.
    let mut bytes = Cursor::new(Vec::new());
    plumb_formats::native::write(profile, &mut bytes)?;
    file.write_all(bytes.get_ref())?;
    Ok(())
}

/// Whether it is the place that takes no file of this user.
fn is_refused(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    matches!(kind, Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem))
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}
