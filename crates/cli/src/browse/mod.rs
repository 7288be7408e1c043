//! Tables and trees of a profile on the terminal, with keys to move through them: what `plumb top` and `plumb view` have in common.
//!
//! Not here: where the profile comes from, and when it is looked at again.

pub mod draw;
mod flame;
pub mod keys;
pub mod screen;
pub mod state;
pub mod table;
