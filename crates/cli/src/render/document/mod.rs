//! Writing a report in sections as text, Markdown or HTML.
//!
//! Elsewhere: the content of reports (`plumb_documents::sections`).

pub mod html;
pub mod markdown;
pub mod text;
