//! Where samples go: the profile and the figures about it.

use plumb_profile::Profile;

use crate::Statistics;

/// The profile so far, and what became of the samples.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) profile: Profile,
    pub(crate) statistics: Statistics,
}
