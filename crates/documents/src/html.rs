//! HTML pages: their common frame, and the only escaping function.
//!
//! Invariant: a page loads nothing and runs no script: its policy allows only its own style. Elsewhere: the content of pages, and the
//! single-file pages with script, which `page_file` packs and web/ builds.

use maud::{Markup, PreEscaped, Render, html};

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
}
