//! Flame graphs as the page reads them: what it says of a recording, and the boxes.
//!
//! Not here: the layout (`analyze`), files and pictures (`cli`), the page's program (web/).

pub mod difference;
mod facts;
pub mod payload;

pub use facts::Facts;
