//! Lengthens the periods of events that are sampled at each occurrence and turn out to be frequent.
//!
//! Elsewhere: how long a period has to be (`limit`).

use plumb_capture_api::SamplingRate;

use super::intake::SampleIntake;
use super::sampled::SampledEvents;
use crate::limit::Progress;

/// Lengthens the periods of events that fire too often. Runs before the rings are read, because more records arrive during that than fit. `hz`: the
/// sampling rate of programs that have begun to take samples by time. Returns the indices of the changed events.
pub(super) fn slow_down(
    events: &mut SampledEvents,
    samples: &mut SampleIntake,
    hz: u32,
    elapsed_ns: u64,
) -> Vec<usize> {
    if events.iter().all(|one| one.limit.is_none()) {
        return Vec::new();
    }
    // A waiting record may belong to any event.
    let waiting = samples.rings.waiting();
    events.change(|all| {
        let mut changed = Vec::new();
        for (index, one) in all.iter_mut().enumerate() {
            let Some(limit) = one.limit else { continue };
            if one.events.is_taken() {
                if one.probe_counts(samples.kernel()).is_some_and(|passed| passed.is_by_time) {
                    one.limit = None;
                    one.events.note_pace(SamplingRate::Frequency(hz));
                    changed.push(index);
                }
                continue;
            }
            let mut weights = samples.ingest.weights();
            let seen = weights.samples_of(one.id) + waiting;
            // Samples that a program handles wait in messages, where they can't be counted. Other events may be thousands, and slow to read.
            let counted =
                if one.events.is_walked_in_kernel() { one.events.counted().unwrap_or(0) } else { 0 };
            let next = limit.next(Progress { samples: seen, counted, elapsed_ns });
            if next.period() == limit.period() {
                one.limit = Some(next);
                continue;
            }
            let since_ns = one.events.change_period(next.period());
            // `None`: the event stays as it was.
            one.limit = since_ns.map(|_| next);
            if let Some(since_ns) = since_ns {
                weights.weigh_from(one.id, since_ns, next.period());
                changed.push(index);
            }
        }
        changed
    })
}
