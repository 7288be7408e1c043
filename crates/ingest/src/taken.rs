//! Data taken out of the profile before the end of a recording.

use std::collections::HashSet;

use plumb_profile::{Meta, ProcessId, Profile, Sample};

use crate::Ingest;
use crate::cgroups::EndedCgroups;

/// A profile that was taken out during the recording.
#[derive(Debug)]
pub struct TakenProfile {
    /// The data since the last call.
    pub profile: Profile,
    /// Processes of the profile that still run.
    pub running: HashSet<ProcessId>,
    /// The control groups of processes that ended since the last call, if reported ([`RecordedProcesses::ended_in`](crate::RecordedProcesses::ended_in)).
    pub cgroups: EndedCgroups,
}

impl Ingest {
    /// Takes out the profile so far and starts a new one, with the same events and nothing more: no ID of the old one is kept.
    /// Samples are in order of arrival; if their weights are off-CPU times, those with reported times are included.
    /// Counts ([`Ingest::statistics`]) continue.
    ///
    /// `kept`: samples that later ones will equal ([`SampleWeights`](crate::SampleWeights)): they get the IDs of the new profile, which has
    /// the rows they refer to.
    pub fn take<'s>(&mut self, kept: impl IntoIterator<Item = &'s mut Sample>) -> TakenProfile {
        self.settle_all();
        let mut without_time = self.weights.take_times(&mut self.processes, &mut self.out.profile);
        let kept = kept.into_iter().map(|sample| -> &mut Sample { sample }).chain(&mut without_time);
        let new = self.out.profile.with_rows_of(kept);
        let running = self.processes.forget_rows();
        self.stacks.forget_rows();
        self.out.statistics.forget_files();
        self.processes.tasks.find_rows(&new);
        let profile = std::mem::replace(&mut self.out.profile, new);
        without_time.iter().for_each(|&sample| self.out.profile.samples.push(sample));
        TakenProfile { profile, running, cgroups: std::mem::take(&mut self.cgroups) }
    }

    /// Puts back samples that were taken out before, in a profile with the same events. Processes keep their rows, if they have
    /// some there. Valid only right after [`Ingest::take`]: newer data is lost.
    pub fn put_back(&mut self, past: Profile) {
        let meta: Meta = std::mem::take(&mut self.out.profile.meta);
        self.out.profile = Profile { meta, ..past };
        self.processes.tasks.find_rows(&self.out.profile);
    }

    /// Forgets all stacks and samples, which the caller may then take out of the profile.
    pub fn end_part(&mut self) {
        self.settle_all();
        self.processes.tasks.threads.values_mut().for_each(|thread| thread.stacks.forget_samples());
    }

    /// Removes lifetimes and mappings of ended processes from the profile; the caller has stored them elsewhere. Late
    /// reports from the kernel come milliseconds after the end.
    pub fn forget_ended(&mut self) {
        self.processes.forget_ended(&mut self.out.profile, self.now_ns);
    }
}
