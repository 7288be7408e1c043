//! Access to a recording in progress.

use std::fs::File;

use plumb_capture_api::Unmeasured;
use plumb_ingest::TakenProfile;
use plumb_process::usage::monotonic_ns;
use plumb_profile::{DsoId, Meta, Profile};

use super::Recorder;
use super::sampled::Sampled;
use crate::error::Error;
use crate::unwinder::AttachedUnwinder;

impl Recorder {
    /// Runs `work` on the profile so far, for any length of time: records that arrive are moved out of the rings. `work` may add names
    /// to frames; rows must stay as they are.
    pub fn meanwhile<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        let Self { rings, ingest, unwinder, .. } = self;
        let fetch = || unwinder.iter_mut().for_each(AttachedUnwinder::fetch);
        rings.moving(|| work(ingest.profile_mut()), fetch)
    }

    /// Runs `work`, which must take far less time than the kernel needs to fill its rings: about a millisecond.
    /// Unlike in [`meanwhile`](Self::meanwhile), records are not moved, which saves a thread.
    pub fn briefly<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        work(self.ingest.profile_mut())
    }

    /// Frames' files that no path leads to any more, or none in this mount namespace, held open.
    pub fn vanished(&self) -> Vec<(DsoId, File)> {
        self.ingest.vanished()
    }

    /// The current time on the clock of the samples, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// Off-CPU times so far that are in no sample; `None`: they are not measured.
    pub fn unmeasured(&mut self) -> Option<Unmeasured> {
        self.measure().map(|measure| measure.unmeasured())
    }

    /// Takes out everything recorded since the last call, and continues with a new profile with the same events: nothing here keeps
    /// an ID of the old one. Counts of lost samples and CPU time continue, and its `meta` holds them for the whole recording so far.
    ///
    /// If off-CPU times are measured, ongoing ones are included up to now.
    pub fn take(&mut self) -> TakenProfile {
        let Self { rings, ingest, unwinder, .. } = self;
        let mut kept = unwinder.as_mut().map(|unwinder| unwinder.end_window(ingest)).unwrap_or_default();
        let fetch = || unwinder.iter_mut().for_each(AttachedUnwinder::fetch);
        let mut taken = rings.moving(|| ingest.take(kept.samples()), fetch);
        unwinder.iter_mut().for_each(|unwinder| unwinder.keep(std::mem::take(&mut kept)));
        taken.profile.meta = self.facts_so_far();
        taken
    }

    /// Puts back samples that [`Recorder::take`] has just returned and that were folded ([`Profile::fold`]) since. As rows are
    /// no longer single samples, samples can't be compared with CPU time from now on.
    pub fn put_back(&mut self, past: Profile) {
        self.ingest.put_back(past);
        self.has_folded = true;
    }

    /// Whether stacks and samples may be taken out of the profile during the recording. False if the weight of samples is
    /// known only at the end: off-CPU times, and events that are not clocks.
    pub fn can_be_in_parts(&mut self) -> bool {
        let is_weighed_later = |one: &Sampled| one.is_scaled() || one.events.is_taken();
        self.measure().is_none() && !self.sampled.iter().any(is_weighed_later)
    }

    /// Changes the clock's frequency to `hz` per second of CPU time. A sample weighs the period at which it was taken; each change
    /// loses less than one period per CPU.
    ///
    /// # Errors
    /// The kernel opens no new events: the old ones continue.
    pub fn set_frequency(&mut self, hz: u32) -> Result<(), Error> {
        let hz = hz.max(1);
        if self.sampled.iter().any(|one| one.events.sampling().period().is_some()) {
            // Records without a period belong to the old frequency up to here.
            self.read(monotonic_ns());
        }
        for one in &mut self.sampled {
            if one.is_clock() && !one.events.sampling().counter.is_hardware() {
                one.events.set_frequency(hz)?;
                one.events
                    .sampling()
                    .period()
                    .iter()
                    .for_each(|&each| self.ingest.weights().weigh_each(one.id, each));
            }
        }
        self.setup.frequency_hz = hz;
        self.belonging.learn(&self.sampled);
        Ok(())
    }

    /// Ends a part of the recording: no stack or sample now in the profile is read or changed any more, so that
    /// [`Recorder::meanwhile`] may take all of them out next.
    pub fn end_part(&mut self) {
        let ingest = &mut self.ingest;
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.add_counts_now(ingest);
        }
        ingest.end_part();
    }

    /// Removes lifetimes and mappings of ended processes from the profile; the caller must have stored them
    /// elsewhere.
    pub fn forget_ended(&mut self) {
        self.ingest.forget_ended();
    }

    /// The facts about the whole recording, as if it had ended now.
    pub fn facts_so_far(&mut self) -> Meta {
        let target_cpu = self.target_cpu();
        self.facts(monotonic_ns(), target_cpu)
    }

    /// The recording so far, as if it had ended now. Stacks that later samples might complete are truncated in it.
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
