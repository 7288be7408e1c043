//! Source files, found at their paths in the debug information or where `--source-map` puts them.
//!
//! Invariant: a line shown comes from an existing file; every missing file is named, with the reason.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

/// Largest source file that is read.
const MAX_BYTES: u64 = 32 << 20;

/// `FROM=TO`: paths that begin with one prefix are looked up below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    from: String,
    to: String,
}

impl FromStr for Map {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() => Ok(Map { from: from.into(), to: to.into() }),
            _ => Err("expected FROM=TO, such as /build/src=/usr/src/me".into()),
        }
    }
}

/// The source files requested so far.
pub struct Sources {
    maps: Vec<Map>,
    /// The file, or the reason why it could not be read.
    files: BTreeMap<String, Result<Source, String>>,
}

struct Source {
    lines: Vec<String>,
    modified: Option<SystemTime>,
}

impl Sources {
    /// Creates an empty cache.
    pub fn new(maps: Vec<Map>) -> Self {
        Self { maps, files: BTreeMap::new() }
    }

    /// Returns a line of a file by its number, counted from 1. `None` if the file is missing or shorter.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        Some(self.file(file)?.lines.get(index)?.as_str())
    }

    fn file(&mut self, file: &str) -> Option<&Source> {
        if file.is_empty() {
            return None;
        }
        if !self.files.contains_key(file) {
            let found = self.find(file);
            self.files.insert(file.to_owned(), found);
        }
        self.files.get(file)?.as_ref().ok()
    }

    /// Reads the file at the first path where it exists.
    fn find(&self, file: &str) -> Result<Source, String> {
        let mut reasons = Vec::new();
        for path in self.places(file) {
            match read(&path) {
                Ok(source) => return Ok(source),
                Err(why) if path.as_os_str() == file => reasons.push(why),
                Err(why) => reasons.push(format!("{}: {why}", path.display())),
            }
        }
        Err(reasons.join("; "))
    }

    fn places(&self, file: &str) -> Vec<PathBuf> {
        let mapped = self.maps.iter().filter_map(|map| {
            let rest = file.strip_prefix(&map.from)?;
            // `/build` is not a prefix of the path `/builder/x.c`.
            let whole = rest.is_empty() || rest.starts_with('/') || map.from.ends_with('/');
            whole.then(|| PathBuf::from(&map.to).join(rest.trim_start_matches('/')))
        });
        mapped.chain([PathBuf::from(file)]).collect()
    }

    /// Returns the requested files that cannot be read, with the reasons.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(file, found)| Some((file.as_str(), found.as_ref().err()?.as_str())))
    }

    /// Returns the files that were read, with their number of lines.
    pub fn lengths(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files.iter().filter_map(|(file, found)| Some((file.as_str(), found.as_ref().ok()?.lines.len())))
    }

    /// Returns the files modified after `built`.
    pub fn newer_than(&self, built: SystemTime) -> Vec<&str> {
        let is_newer = |source: &Source| source.modified.is_some_and(|modified| modified > built);
        let files = self.files.iter().filter(|(_, source)| source.as_ref().is_ok_and(is_newer));
        files.map(|(file, _)| file.as_str()).collect()
    }
}

fn read(path: &Path) -> Result<Source, String> {
    let why = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "may not be read".to_owned(),
        _ => error.to_string(),
    };
    // Opening anything but a regular file (such as a pipe) could block forever.
    let meta = std::fs::metadata(path).map_err(why)?;
    if !meta.is_file() {
        return Err("is no file".into());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(why)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Source { lines: text.lines().map(str::to_owned).collect(), modified: meta.modified().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_mapped_by_whole_components() {
        let map = |text: &str| text.parse::<Map>();
        assert!(map("no").is_err() && map("=x").is_err());
        let sources = Sources::new(vec![map("/build=/usr/src/me").expect("it is a map")]);
        let first = |file: &str| sources.places(file)[0].display().to_string();
        assert_eq!(first("/build/a/x.c"), "/usr/src/me/a/x.c");
        assert_eq!(first("/builder/x.c"), "/builder/x.c");
        assert_eq!(first("/other/x.c"), "/other/x.c");
    }

    #[test]
    fn what_is_missing_is_remembered() {
        let mut sources = Sources::new(Vec::new());
        assert_eq!(sources.line("/no/such/file.c", 3), None);
        assert_eq!(sources.line("", 3), None);
        assert_eq!(sources.missing().collect::<Vec<_>>(), [("/no/such/file.c", "no such file")]);
        let map = "/no=/nor".parse().expect("it is a map");
        let mut sources = Sources::new(vec![map]);
        assert_eq!(sources.line("/no/such/file.c", 3), None);
        let why = "/nor/such/file.c: no such file; no such file";
        assert_eq!(sources.missing().collect::<Vec<_>>(), [("/no/such/file.c", why)]);
    }
}
