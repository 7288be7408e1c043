//! Facts about what a filter selects: those of the recording, but for figures that are of all of it.
//!
//! Invariant: a figure that was measured of the whole recording (CPU time, occurrences, run-queue wait) is unknown for a part.

use plumb_profile::{Meta, Profile};

use crate::filter::{Filter, TimeRange, start_ns};

/// The recording's facts as far as they hold for the samples that `filter` keeps. Its start and length are those of the selected time;
/// losses and warnings are the recording's.
pub(crate) fn selected_meta(profile: &Profile, filter: &Filter) -> Meta {
    let mut meta = profile.meta.clone();
    if let Some(range) = filter.time {
        let zero = start_ns(profile);
        let start = zero.saturating_add(range.start);
        if meta.start_unix_ns > 0 {
            meta.start_unix_ns = meta.start_unix_ns.saturating_add(start.saturating_sub(meta.start_ns));
        }
        meta.start_ns = start;
        meta.duration_ns = selected_ns(profile, range);
    }
    if !filter.is_whole() {
        meta.target_cpu_ns = None;
        meta.queued = None;
        meta.occurrences.clear();
    }
    meta
}

/// Length of the selected time, in nanoseconds.
fn selected_ns(profile: &Profile, range: TimeRange) -> u64 {
    let last = profile.samples.len().checked_sub(1).and_then(|last| profile.samples.get(last));
    let end = match (profile.meta.duration_ns, last) {
        (0, Some(last)) => last.time_ns.saturating_sub(start_ns(profile)),
        (duration, _) => duration,
    };
    range.overlap(0, end)
}
