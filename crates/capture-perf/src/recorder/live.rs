//! Looking at a recording while it goes on.

use plumb_profile::Profile;

use super::Recorder;
use crate::sys::usage::monotonic_ns;

impl Recorder {
    /// The profile so far, for names to be put beside its frames. Its rows must stay as they are.
    pub fn profile_mut(&mut self) -> &mut Profile {
        self.ingest.profile_mut()
    }

    /// The clock of the samples, now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// The recording so far, as if it had ended now. Stacks that later samples might complete are cut in it.
    pub fn so_far(&mut self) -> Profile {
        let target_cpu = self.target_cpu();
        let mut profile = self.ingest.profile().clone();
        profile.meta = self.facts(monotonic_ns(), target_cpu);
        profile.samples.sort_by_time();
        profile
    }
}
