//! The records and messages of a recording, and the profile that is made of them.
//!
//! Elsewhere: which events there are (`sampled`), the facts on the recording as a whole (`finish`).

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_capture_api::{KernelUnwinder, Measure, Unmeasured};
use plumb_ingest::{Ingest, Statistics, TakenProfile};
use plumb_profile::{DsoId, Profile};

use super::sampled::SampledEvents;
use crate::events::EventContext;
use crate::merge::Merge;
use crate::overflow::OverflowBuffer;
use crate::ring::Ring;
use crate::unwinder::AttachedUnwinder;

/// Limits for waiting for accounts of processes at the end: the time without any, and the total
/// time.
const SETTLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// The samples of a recording in progress: reads records and messages, and keeps the profile of them.
pub struct SampleIntake {
    pub(super) context: Arc<EventContext>,
    pub(super) rings: Merge<OverflowBuffer<Ring>>,
    pub(super) unwinder: Option<AttachedUnwinder>,
    pub(super) ingest: Ingest,
    /// Memory for cached unwind information that is not in use, in bytes.
    pub(super) unwind_memory: usize,
    /// Whether the weight of samples is known only at the end.
    pub(super) is_weighed_later: bool,
    /// Whether earlier samples were summed up.
    pub(super) has_folded: bool,
}

impl SampleIntake {
    /// The profile so far. More frames and files may come, but none changes or disappears.
    pub fn profile(&self) -> &Profile {
        self.ingest.profile()
    }

    /// Counts of samples so far.
    pub fn statistics(&self) -> &Statistics {
        self.ingest.statistics()
    }

    /// Runs `work` on the profile so far, for any length of time: records that arrive are moved out of the rings. `work` may add names
    /// to frames; rows must stay as they are.
    pub fn meanwhile<R>(&mut self, work: impl FnOnce(&mut Profile) -> R) -> R {
        self.moving(|ingest| work(ingest.profile_mut()))
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

    /// Off-CPU times so far that are in no sample; `None`: they are not measured.
    pub fn unmeasured(&mut self) -> Option<Unmeasured> {
        self.measure().map(|measure| measure.unmeasured())
    }

    /// Puts back samples that [`Recorder::take`](super::Recorder::take) has just returned and that were folded ([`Profile::fold`]) since. As
    /// rows are no longer single samples, samples can't be compared with CPU time from now on.
    pub fn put_back(&mut self, past: Profile) {
        self.ingest.put_back(past);
        self.has_folded = true;
    }

    /// Whether stacks and samples may be taken out of the profile during the recording. False if the weight of samples is
    /// known only at the end: off-CPU times, and events that are not clocks.
    pub fn can_be_in_parts(&mut self) -> bool {
        self.measure().is_none() && !self.is_weighed_later
    }

    /// Ends a part of the recording: no stack or sample now in the profile is read or changed any more, so that
    /// [`SampleIntake::meanwhile`] may take all of them out next.
    pub fn end_part(&mut self) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.add_counts_now(&mut self.ingest);
        }
        self.ingest.end_part();
    }

    /// Removes lifetimes and mappings of ended processes from the profile; the caller must have stored them
    /// elsewhere.
    pub fn forget_ended(&mut self) {
        self.ingest.forget_ended();
    }

    /// Takes out everything since the last call; `meta` is left empty.
    pub(super) fn take(&mut self) -> TakenProfile {
        let Self { ingest, unwinder, .. } = self;
        let mut kept = unwinder.as_mut().map(|unwinder| unwinder.end_window(ingest)).unwrap_or_default();
        let taken = self.moving(|ingest| ingest.take(kept.samples()));
        self.unwinder.iter_mut().for_each(|unwinder| unwinder.keep(std::mem::take(&mut kept)));
        taken
    }

    /// Runs `work` while records and messages are moved out of the kernel's buffers.
    fn moving<R>(&mut self, work: impl FnOnce(&mut Ingest) -> R) -> R {
        let Self { rings, ingest, unwinder, .. } = self;
        let fetch = || unwinder.iter_mut().for_each(AttachedUnwinder::fetch);
        rings.moving(|| work(ingest), fetch)
    }

    /// Descriptors that become readable when there is something to read.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.context.rings.descriptors().chain(self.kernel().map(KernelUnwinder::wakes))
    }

    /// The kernel unwinder, if one is used.
    pub(super) fn kernel(&self) -> Option<&dyn KernelUnwinder> {
        self.unwinder.as_ref().map(AttachedUnwinder::kernel)
    }

    /// The measurement of the kernel unwinder, if it has one.
    pub(super) fn measure(&mut self) -> Option<&mut dyn Measure> {
        self.unwinder.as_mut()?.measure()
    }

    /// Number of tables requested so far by the kernel unwinder.
    pub(super) fn wants(&self) -> u64 {
        self.unwinder.as_ref().map_or(0, AttachedUnwinder::wants)
    }

    /// Reads all records that are not newer than `until_ns`, and the messages in between.
    pub(super) fn read(&mut self, events: &SampledEvents, until_ns: u64) {
        let Self { ingest, rings, .. } = self;
        let Some(unwinder) = &mut self.unwinder else {
            rings.drain(until_ns, |record| ingest.record(events.of(record), record));
            return;
        };
        // Before the records: when a message is sent, the records it depends on are in the rings already.
        unwinder.take(ingest);
        let mut between = unwinder.begin();
        rings.drain(until_ns, |record| {
            between.hand_out(ingest, record.timestamp().unwrap_or(0));
            ingest.record(events.of(record), record);
        });
        between.hand_out(ingest, until_ns);
        between.end(ingest);
        unwinder.add_counts(ingest, until_ns);
        if unwinder.is_due() {
            // Until the table is supplied, stacks are copied, so that the rings would soon be full.
            rings.moving(|| unwinder.supply(ingest), || {});
        }
    }

    /// Maintains what is kept beside the profile, to be called periodically.
    pub(super) fn look(&mut self) {
        self.ingest.processes().look_at_queues(false);
        self.ingest.code().look_at_tables(self.unwind_memory);
    }

    /// Number of samples that the kernel dropped so far, and of records that were moved to a file and could not be read back. LOST records don't name
    /// the lost records: nearly all are samples. The last loss has no record, which is why the events are read too.
    pub(super) fn lost(&self, events: &SampledEvents) -> u64 {
        let statistics = self.statistics();
        events.lost(self.kernel()).max(statistics.lost_samples + statistics.lost_records) + self.rings.lost()
    }

    /// Stops measuring. Reads the stacks of ongoing waits that could not be unwound at their start: the table may not have been loaded yet.
    pub(super) fn stop_measuring(&mut self) {
        let Some(unwinder) = &mut self.unwinder else { return };
        // On failure, slightly more is measured.
        let _ = unwinder.unwatch();
        // Waits that can't be read now are in the sum, without a stack.
        let _ = unwinder.look_at_threads(&mut self.ingest, true);
        if let Some(measure) = unwinder.measure() {
            let _ = measure.stop();
        }
    }

    /// Reports threads that are off the CPU at the end.
    pub(super) fn add_pending(&mut self, ended_ns: u64) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.add_pending(&mut self.ingest, ended_ns);
        }
    }

    /// Scales the weights of samples to the kernel's counts. `of_target`: the events count only the target.
    pub(super) fn weigh(&mut self, events: &SampledEvents, of_target: bool) {
        let kernel = self.unwinder.as_ref().map(AttachedUnwinder::kernel);
        events.weigh(&mut self.ingest.weights(), kernel, of_target);
    }

    /// Handles late records: the kernel frees a task, and closes its account, milliseconds after its exit.
    pub(super) fn settle(&mut self, events: &SampledEvents) {
        if self.unwinder.is_none() {
            return;
        }
        // Counts may wait for a message of the last read.
        self.read(events, u64::MAX);
        let (begin, mut last, mut open) =
            (Instant::now(), Instant::now(), self.ingest.processes().open_accounts());
        while open > 0 && last.elapsed() < SETTLE.0 && begin.elapsed() < SETTLE.1 {
            std::thread::sleep(Duration::from_millis(5));
            self.read(events, u64::MAX);
            if open != std::mem::replace(&mut open, self.ingest.processes().open_accounts()) {
                last = Instant::now();
            }
        }
    }
}
