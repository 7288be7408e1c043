//! Sources of interpreted programs, read from the paths in their frames.
//!
//! Invariant: the work is bounded whatever the paths of a recording: only regular files that end in `.py`, few and small. Unreadable files are left
//! out: rules that examine lines then report nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use plumb_analyze::{ScriptSources, View};

/// Largest number of files, and of bytes of each.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 4 << 20;

/// Reads the sources of the functions of a view.
pub fn sources(view: &View<'_>) -> ScriptSources {
    let profile = view.profile();
    let scripts = view.frames().filter(|(_, frame)| frame.frame.is_some_and(|id| profile.is_script(id)));
    let paths: BTreeSet<&str> =
        scripts.map(|(_, frame)| frame.file).filter(|path| path.ends_with(".py")).collect();
    let mut sources = ScriptSources::default();
    for path in paths.into_iter().take(MOST_FILES) {
        if let Some(text) = text(path) {
            sources.add(path, text.lines().map(str::to_owned).collect());
        }
    }
    sources
}

fn text(path: &str) -> Option<String> {
    // Opening a pipe would block.
    let known = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    (known.len() <= MOST_BYTES).then(|| String::from_utf8_lossy(&text).into_owned())
}
