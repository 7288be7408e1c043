//! The destination of `--html`, the same in every command.
//!
//! Elsewhere: the frame of pages (`plumb_documents::html`) and their content.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::newfile;
use crate::terminal::{Output, say};
use anyhow::Result;

/// Writes a page to the named file; otherwise to standard output, or, if that is a terminal, to `COMMAND.html`.
pub fn deliver(page: &[u8], named: Option<&Path>, command: &str, out: &mut Output<'_>) -> Result<()> {
    let own = || out.width.map(|_| PathBuf::from(format!("{command}.html")));
    match named.map(Path::to_path_buf).or_else(own) {
        Some(path) => {
            newfile::write(&path, page)?;
            say!("wrote {}", path.display());
        }
        None => out.write_all(page)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_to_the_file_that_is_named_or_to_whoever_reads() {
        let mut bytes = Vec::new();
        deliver(b"<p>", None, "x", &mut Output::plain(&mut bytes)).unwrap();
        assert_eq!(bytes, b"<p>");
        let path = std::env::temp_dir().join(format!("plumb-page-{}.html", std::process::id()));
        for width in [None, Some(80)] {
            let mut bytes = Vec::new();
            let mut out = match width {
                Some(width) => Output::lines(&mut bytes, width, false),
                None => Output::plain(&mut bytes),
            };
            deliver(b"<p>", Some(&path), "x", &mut out).unwrap();
            drop(out);
            assert!(bytes.is_empty());
            assert_eq!(std::fs::read(&path).unwrap(), b"<p>");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
