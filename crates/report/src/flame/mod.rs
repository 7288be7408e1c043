//! Flame graphs as the page reads them: what it says of a recording, and the boxes; and as an SVG.
//!
//! Not here: the layout (`analyze`), the page's program (web/).

pub mod difference;
mod facts;
pub mod payload;
pub mod svg;

use plumb_analyze::Grouping;
use plumb_profile::{Profile, Scope};

pub use facts::Facts;

/// What stacks are grouped by unless something else is asked for: of a machine programs are to be told apart, whose outermost functions are
/// much the same.
pub fn default_grouping(profile: &Profile) -> Grouping {
    match profile.meta.scope {
        Scope::System => Grouping::Comm,
        _ => Grouping::None,
    }
}
