//! Writes the recording's file. An older one is kept, only the owner may read it (it holds command lines), and other
//! directories are tried if the disk is full.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use plumb_profile::Profile;
use plumb_record::{temporary_folders, write_profile};

use super::plain;
use crate::exit;
use crate::newfile::{self, Access, Destination, NewFile};

/// The destination of a recording.
pub struct Output {
    path: PathBuf,
    destination: Destination,
}

impl Output {
    /// Checks, before recording, that a file can be written there.
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

    /// Whether the recording goes to standard output. If so, print nothing else to it.
    pub fn is_stdout(&self) -> bool {
        self.destination == Destination::Stdout
    }

    /// Path of the destination if it is a file.
    pub fn file(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(path) => Some(path),
            Destination::Stream(_) | Destination::Stdout => None,
        }
    }

    /// Writes a recording, and keeps an older one as `FILE.old`. If that fails, other directories are tried: a
    /// recording can't be repeated.
    pub fn write(&self, profile: &Profile) -> Result<Written> {
        self.write_by(&mut |file| plain(write_profile(profile, file)))
    }

    /// As [`write`](Self::write), with a function that writes the file from its beginning.
    pub fn write_by(&self, write: WriteTo<'_>) -> Result<Written> {
        let error = match put(&self.destination, write) {
            Ok(()) => return Ok(Written::at(&self.path, &self.destination, None)),
            Err(error) => error,
        };
        let name = format!("profile-{}.plumb", std::process::id());
        let why = format!("{}: {error:#}", newfile::name(&self.path));
        for folder in temporary_folders() {
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

/// A function that writes a recording to a new file, from its beginning.
pub(super) type WriteTo<'a> = &'a mut dyn FnMut(&mut NewFile) -> Result<()>;

/// Writes a recording, and keeps an older one that is a file.
fn put(destination: &Destination, write: WriteTo<'_>) -> Result<()> {
    let Destination::File(path) = destination else {
        let mut file = NewFile::to(destination)?;
        return write(&mut file);
    };
    let mut file = NewFile::beside(path, Access::Private)?;
    write(&mut file)?;
    // A directory may have been created there since the check; it is not moved.
    if path.is_file() {
        fs::rename(path, old(path)).context("keeping the older recording")?;
    }
    Ok(file.commit()?)
}

/// A written recording.
pub struct Written {
    path: PathBuf,
    destination: Destination,
    bytes: u64,
    /// The reason why it is not at the requested path.
    elsewhere: Option<String>,
}

impl Written {
    fn at(path: &Path, destination: &Destination, elsewhere: Option<String>) -> Self {
        let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
        Self { path: path.to_owned(), destination: destination.clone(), bytes, elsewhere }
    }

    /// Replaces the recording, which must be a file, by a newer version.
    pub fn replace_by(&mut self, write: WriteTo<'_>) -> Result<()> {
        let Destination::File(path) = &self.destination else { bail!("no file can be replaced") };
        let mut file = NewFile::beside(path, Access::Private)?;
        write(&mut file)?;
        file.commit()?;
        self.bytes = fs::metadata(&self.path).map_or(0, |meta| meta.len());
        Ok(())
    }

    /// The recording's path, and its size in bytes.
    pub fn place(&self) -> (&Path, u64) {
        (&self.path, self.bytes)
    }

    /// Whether it was written elsewhere than requested, which must be reported.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// A message with the path, the size, and the command to view it.
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

/// Whether this user can't create a file at that location.
fn is_refused(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    matches!(kind, Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem))
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}
