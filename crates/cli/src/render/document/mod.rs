//! Writing a report in sections as text.
//!
//! Elsewhere: the content of reports, and writing them as Markdown or HTML (`plumb_documents::sections`).

pub mod text;
