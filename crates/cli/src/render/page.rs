//! HTML pages: their common frame, the only escaping function, and the destination of `--html`, the same in every command.
//!
//! Invariant: a page loads nothing and runs no script: its policy allows only its own style. Elsewhere: the content of pages, and the
//! single-file pages with script, which `plumb_documents::page_file` packs and web/ builds.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use maud::{Markup, PreEscaped, Render, html};

use crate::newfile;
use crate::terminal::{Output, say};

/// Content security policy of a page: only its own inline style is allowed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A complete page.
pub fn page(title: &str, style: &str, body: &Markup) -> Markup {
    html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                (PreEscaped(format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">")))
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            (PreEscaped("\n"))
            body { (body) }
        }
        (PreEscaped("\n"))
    }
}

/// Escapes text for an element or an attribute.
pub fn escape(text: &str) -> String {
    text.render().into_string()
}

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
    fn text_cannot_become_markup() {
        assert_eq!(escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        let page = page("</title><script>", "p {}", &html! { p { "<b>" } }).into_string();
        assert!(page.contains("<title>&lt;/title&gt;&lt;script&gt;</title>"), "{page}");
        assert!(page.contains("<style>p {}</style>") && page.contains("<p>&lt;b&gt;</p>"), "{page}");
        assert!(page.starts_with("<!doctype html>\n<html") && page.contains("default-src 'none'"), "{page}");
    }

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
