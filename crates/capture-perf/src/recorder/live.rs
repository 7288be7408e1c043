//! Looking at a recording while it goes on.

use plumb_profile::Profile;

use super::Recorder;
use crate::sys::usage::monotonic_ns;

impl Recorder {
    /// Works on the profile so far, for as long as that takes: what the kernel writes meanwhile is moved out of its rings. Names may
    /// be put beside frames; rows must stay as they are.
    pub fn meanwhile<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        let Self { rings, ingest, .. } = self;
        rings.moving(|| work(ingest.profile_mut()))
    }

    /// The clock of the samples, now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// Forgets all samples but the last `kept`, and what only the others need, so that a recording may go on for days. Returns the
    /// time of the first sample that is left. What the target used before is not told from what it used since: the recording has
    /// no account of processor time from now on.
    pub fn forget_all_but(&mut self, kept: usize) -> Option<u64> {
        let (ingest, event) = (&mut self.ingest, self.event);
        if let Some(assisted) = &mut self.assisted {
            assisted.add_counts_now(ingest, event, monotonic_ns());
        }
        self.rings.moving(|| ingest.forget_all_but(kept));
        self.has_forgotten = true;
        Some(ingest.profile().samples.get(0)?.time_ns)
    }

    /// The recording so far, as if it had ended now. Stacks that later samples might complete are cut in it.
    pub fn so_far(&mut self) -> Profile {
        let target_cpu = self.target_cpu();
        let mut profile = self.meanwhile(|profile| profile.clone());
        profile.meta = self.facts(monotonic_ns(), target_cpu);
        if self.has_forgotten {
            profile.meta.target_cpu_ns = None;
            profile.meta.warnings.push(
                "earlier samples were forgotten to save memory: this is the end of a longer recording".into(),
            );
        }
        profile.samples.sort_by_time();
        profile
    }
}
