//! Call-frame information in the format that compilers write: `.eh_frame`, `.eh_frame_hdr` and `.debug_frame`.
//!
//! References: DWARF 5 §6.4 and §7.24; Linux Standard Base 5.0 core, §10.6 for `.eh_frame` and `.eh_frame_hdr`.
//! Everything is decoded in place, for one address at a time. Applying rules to a frame is elsewhere (`apply`).

mod cie;
mod entry;
mod error;
mod hdr;
mod index;
mod machine;
mod ops;
mod pointer;
mod reader;
mod search;

pub use error::{CfiError, CfiErrorKind, SectionKind};

pub(crate) use entry::{Fde, Frames};
pub(crate) use hdr::Header;
pub(crate) use index::Index;
pub(crate) use machine::{Scratch, each_row, row_at};
pub(crate) use pointer::{Bases, Encoding};
pub(crate) use reader::Reader;
