//! Looking at a recording while it goes on.

use std::fs::File;

use plumb_capture_api::Unmeasured;
use plumb_ingest::TakenProfile;
use plumb_process::usage::monotonic_ns;
use plumb_profile::{DsoId, Meta, Profile};

use super::Recorder;
use super::sampled::Sampled;
use crate::error::Error;
use crate::session::UnwinderSession;

impl Recorder {
    /// Works on the profile so far, for as long as that takes: what the kernel writes meanwhile is moved out of its rings. Names may
    /// be put beside frames; rows must stay as they are.
    pub fn meanwhile<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        let Self { rings, ingest, assisted, .. } = self;
        let fetch = || assisted.iter_mut().for_each(UnwinderSession::fetch);
        rings.moving(|| work(ingest.profile_mut()), fetch)
    }

    /// Likewise for work that is done in far less time than the kernel takes to fill its rings: a millisecond or so. Nothing moves what
    /// comes, which takes a thread each time.
    pub fn briefly<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        work(self.ingest.profile_mut())
    }

    /// Files of frames that no path leads to any more, or none in this mount namespace, held open.
    pub fn vanished(&self) -> Vec<(DsoId, File)> {
        self.ingest.vanished()
    }

    /// The clock of the samples, now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// Times off the processor so far that are in no sample; `None`: they are not measured.
    pub fn unmeasured(&mut self) -> Option<Unmeasured> {
        self.off_cpu().map(|off_cpu| off_cpu.unmeasured())
    }

    /// Takes out what was recorded since the last time, and goes on with a new profile that has the same events: nothing here remembers
    /// an id of the old one. Counts of lost samples and processor time go on, and are in its `meta` as of the whole recording so far.
    ///
    /// Where times off the processor are measured those that go on are in it up to now.
    pub fn take(&mut self) -> TakenProfile {
        let Self { rings, ingest, assisted, .. } = self;
        let mut kept = assisted.as_mut().map(|assisted| assisted.end_window(ingest)).unwrap_or_default();
        let fetch = || assisted.iter_mut().for_each(UnwinderSession::fetch);
        let mut taken = rings.moving(|| ingest.take(kept.samples()), fetch);
        assisted.iter_mut().for_each(|assisted| assisted.keep(std::mem::take(&mut kept)));
        taken.profile.meta = self.facts_so_far();
        taken
    }

    /// Goes on with samples that were taken out by [`Recorder::take`] just before, and were folded ([`Profile::fold`]) since. As rows are
    /// no longer samples, what was recorded can't be held against processor time from now on.
    pub fn put_back(&mut self, past: Profile) {
        self.ingest.put_back(past);
        self.has_folded = true;
    }

    /// Whether stacks and samples may be taken out of the profile while the recording goes on. Not so where what samples weigh is
    /// known at the end only: times off the processor, and events that are no clock.
    pub fn can_be_in_parts(&mut self) -> bool {
        let is_weighed_later = |one: &Sampled| one.is_scaled() || one.events.is_taken();
        self.off_cpu().is_none() && !self.sampled.iter().any(is_weighed_later)
    }

    /// Samples by the clock so many times a second of processor time from now on. A sample weighs the period at which it was taken; less
    /// than one period of each processor is cut off at each change.
    ///
    /// # Errors
    /// The kernel opens no new events: those that are there go on as they were.
    pub fn set_frequency(&mut self, hz: u32) -> Result<(), Error> {
        let hz = hz.max(1);
        if self.sampled.iter().any(|one| one.events.sampling().period().is_some()) {
            // Records that don't say what they count are of the old frequency so far.
            self.read(monotonic_ns());
        }
        for one in &mut self.sampled {
            if one.is_clock() && !one.events.sampling().counter.is_hardware() {
                one.events.set_frequency(hz)?;
                one.events.sampling().period().iter().for_each(|&each| self.ingest.weigh_each(one.id, each));
            }
        }
        self.setup.frequency_hz = hz;
        self.belonging.learn(&self.sampled);
        Ok(())
    }

    /// Ends a part of the recording: no stack and no sample that is in the profile now is looked at or changed any more, so that
    /// [`Recorder::meanwhile`] may take all of them out, next.
    pub fn end_part(&mut self) {
        let ingest = &mut self.ingest;
        if let Some(assisted) = &mut self.assisted {
            assisted.add_counts_now(ingest);
        }
        ingest.end_part();
    }

    /// Takes what is known of processes that have ended out of the profile: their lives and mappings, which are to be kept elsewhere
    /// by now.
    pub fn forget_ended(&mut self) {
        self.ingest.forget_ended();
    }

    /// What is known of the recording as a whole, as if it had ended now.
    pub fn facts_so_far(&mut self) -> Meta {
        let target_cpu = self.target_cpu();
        self.facts(monotonic_ns(), target_cpu)
    }

    /// The recording so far, as if it had ended now. Stacks that later samples might complete are cut in it.
    pub fn so_far(&mut self) -> Profile {
        let target_cpu = self.target_cpu();
        let mut profile = self.meanwhile(|profile| profile.clone());
        profile.meta = self.facts(monotonic_ns(), target_cpu);
        if self.has_folded {
            profile.meta.target_cpu_ns = None;
            profile.meta.warnings.push(
                "to save memory earlier samples are folded: their weights are there, but those with the same stack are one sample, \
                 and processes that have ended are one for each program"
                    .into(),
            );
        }
        profile.samples.sort_by_time();
        profile
    }
}
