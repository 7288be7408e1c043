//! The sources of interpreted programs, read from where their frames say.
//!
//! Invariant: bounded work, whatever the paths of a recording name: regular files that end in `.py`, few and small. What can't be read is left out: rules that
//! look at lines then say nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use plumb_analyze::{ScriptSources, View};

/// Files that are read, and bytes of each.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 4 << 20;

/// The sources of the functions of a view.
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
    // Opening a pipe would wait.
    let known = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    (known.len() <= MOST_BYTES).then(|| String::from_utf8_lossy(&text).into_owned())
}
