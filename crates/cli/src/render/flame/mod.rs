//! Flame graphs as files, and their formats by name.
//!
//! Not here: the layout (analyze), the page and the picture (report).

use std::path::Path;

use anyhow::{Result, bail};

use crate::newfile;
use crate::terminal::say;

pub use plumb_report::flame::Facts;

/// What kind of file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Html,
    Svg,
}

/// Writes a picture, and says so.
pub fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    newfile::write(output, bytes)?;
    say!("wrote {}", output.display());
    Ok(())
}

/// What kind of picture a file is to be, by its name.
pub fn format_of(output: &Path) -> Result<Format> {
    match output.extension().and_then(|extension| extension.to_str()) {
        Some(end) if end.eq_ignore_ascii_case("html") || end.eq_ignore_ascii_case("htm") => Ok(Format::Html),
        Some(end) if end.eq_ignore_ascii_case("svg") => Ok(Format::Svg),
        _ => bail!("{}: the name has to end in .html or .svg", output.display()),
    }
}
