//! Flame graphs in the page's format (facts about the recording, and the boxes), and as SVG.
//!
//! Elsewhere: the layout (`analyze`), the page's program (web/).

pub mod difference;
pub mod difference_svg;
mod facts;
pub mod payload;
pub mod svg;

use plumb_analyze::Grouping;
use plumb_profile::{Profile, Scope};

pub use facts::Facts;

/// Returns the default grouping of stacks: in a recording of the whole machine, programs must be distinguished, because their outermost functions
/// are much the same.
pub fn default_grouping(profile: &Profile) -> Grouping {
    match profile.meta.scope {
        Scope::System => Grouping::Comm,
        _ => Grouping::None,
    }
}
