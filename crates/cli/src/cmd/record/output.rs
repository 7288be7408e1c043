//! Puts a recording in place: whole or not at all, an older one kept, and somewhere else when the disk is full.

use std::fs::{self, File, OpenOptions};
use std::io::{Cursor, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use plumb_profile::Profile;

/// Where a recording is to go.
pub(in crate::cmd) struct Output {
    path: PathBuf,
    place: Place,
}

/// What is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing yet, or a file.
    File,
    /// A device or a named pipe, which nothing can be renamed to.
    Stream,
    /// Standard output (`-`).
    Stdout,
}

impl Place {
    fn of(path: &Path) -> Self {
        if path == Path::new("-") {
            return Place::Stdout;
        }
        let is_stream = fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if is_stream { Place::Stream } else { Place::File }
    }
}

impl Output {
    /// Makes sure, before anything is recorded, that a file can be written there.
    pub fn check(path: &Path) -> Result<Self> {
        ensure!(
            !path.is_dir() && !path.as_os_str().as_bytes().ends_with(b"/"),
            "cannot write {}: it is a directory; name a file in it",
            path.display()
        );
        let place = Place::of(path);
        match place {
            Place::File => {
                Temporary::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            }
            Place::Stream => (),
            Place::Stdout => ensure!(
                !std::io::stdout().is_terminal(),
                "a recording is not for a terminal: name a file, or pipe it to something like plumb report -"
            ),
        }
        Ok(Self { path: path.to_owned(), place })
    }

    /// Whether it can be written a second time.
    pub fn is_replaceable(&self) -> bool {
        self.place == Place::File
    }

    /// Writes a recording, and keeps an older one as `FILE.old`. If the place doesn't take it, others are tried: a
    /// recording can't be made again.
    pub fn write(&self, profile: &Profile) -> Result<Written> {
        let error = match self.write_to(&self.path, profile) {
            Ok(()) => return Ok(Written::at(&self.path, None)),
            Err(error) => error,
        };
        let name = format!("profile-{}.plumb", std::process::id());
        for folder in [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from("/dev/shm")] {
            let elsewhere = folder.join(&name);
            if self.write_to(&elsewhere, profile).is_ok() {
                return Ok(Written::at(&elsewhere, Some(format!("{}: {error:#}", self.path.display()))));
            }
        }
        Err(error
            .context(format!("the recording is lost: it could not be written to {}", self.path.display())))
    }

    fn write_to(&self, path: &Path, profile: &Profile) -> Result<()> {
        if path == self.path {
            match self.place {
                Place::File => (),
                Place::Stream => return write(profile, OpenOptions::new().write(true).open(path)?),
                Place::Stdout => {
                    return write(profile, std::io::stdout().as_fd().try_clone_to_owned()?.into());
                }
            }
        }
        let temporary = Temporary::create(path)?;
        write(profile, temporary.file.try_clone()?)?;
        // A directory may have come to stand there meanwhile, and that is not ours to move.
        if path.is_file() {
            fs::rename(path, old(path)).context("keeping the older recording")?;
        }
        temporary.rename(path)
    }
}

/// A recording that is in place.
pub(in crate::cmd) struct Written {
    path: PathBuf,
    bytes: u64,
    /// Why it isn't where it was to be.
    elsewhere: Option<String>,
}

impl Written {
    fn at(path: &Path, elsewhere: Option<String>) -> Self {
        let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
        Self { path: path.to_owned(), bytes, elsewhere }
    }

    /// Puts a newer version of the recording in its place, which is a file.
    pub fn replace(&mut self, profile: &Profile) -> Result<()> {
        let temporary = Temporary::create(&self.path)?;
        write(profile, temporary.file.try_clone()?)?;
        temporary.rename(&self.path)?;
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
        if self.path == Path::new("-") {
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

fn write(profile: &Profile, mut file: File) -> Result<()> {
    // It is small, and so a full disk is met once and not somewhere between the parts of an archive.
    let mut bytes = Cursor::new(Vec::new());
    plumb_formats::native::write(profile, &mut bytes)?;
    file.write_all(bytes.get_ref())?;
    Ok(())
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

/// A file beside the one to be, removed unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(beside: &Path) -> Result<Self> {
        let mut name = std::ffi::OsString::from(".");
        name.push(beside.file_name().context("not the name of a file")?);
        name.push(format!(".{}.tmp", std::process::id()));
        let path = beside.with_file_name(name);
        // In a folder that all may write to, somebody's link of this name must not be followed.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file })
    }

    fn rename(self, to: &Path) -> Result<()> {
        fs::rename(&self.path, to)?;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = fs::remove_file(&self.path);
    }
}
