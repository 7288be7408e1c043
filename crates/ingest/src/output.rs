//! The destination of samples: the profile and the counts.

use plumb_profile::Profile;

use crate::Statistics;

/// The profile so far, with counts of its samples.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) profile: Profile,
    pub(crate) statistics: Statistics,
}
