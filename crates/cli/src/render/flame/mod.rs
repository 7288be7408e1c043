//! Flame graphs as files, with the format chosen by file name.
//!
//! Elsewhere: the layout (analyze), the HTML page and the SVG (documents).

use std::path::Path;

use anyhow::{Result, bail};

use crate::newfile;
use crate::terminal::say;

pub use plumb_documents::flame::Facts;

/// File format of a flame graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlameFormat {
    Html,
    Svg,
}

/// Writes a flame graph to a file, and says so.
pub fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    newfile::write(output, bytes)?;
    say!("wrote {}", output.display());
    Ok(())
}

/// The format for a file name.
pub fn format_of(output: &Path) -> Result<FlameFormat> {
    match output.extension().and_then(|extension| extension.to_str()) {
        Some(end) if end.eq_ignore_ascii_case("html") || end.eq_ignore_ascii_case("htm") => {
            Ok(FlameFormat::Html)
        }
        Some(end) if end.eq_ignore_ascii_case("svg") => Ok(FlameFormat::Svg),
        _ => bail!("{}: the name has to end in .html or .svg", output.display()),
    }
}
