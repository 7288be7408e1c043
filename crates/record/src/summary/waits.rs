//! The off-CPU times that were recorded.

use plumb_profile::{Event, Profile};

/// The recorded times by event, in one line.
pub(super) fn line(profile: &Profile) -> String {
    let seconds = |event: &str| {
        let is_it =
            |sample: &plumb_profile::Sample| profile.strings.get(profile.events[sample.event].name) == event;
        let (count, sum) = profile
            .samples
            .iter()
            .filter(is_it)
            .fold((0_u64, 0_u64), |(count, sum), sample| (count + 1, sum.saturating_add(sample.weight)));
        (count, sum as f64 / 1e9)
    };
    let ((blocks, blocked), (waits, waited)) = (seconds(Event::OFF_CPU), seconds(Event::RUN_QUEUE));
    let used = profile.meta.target_cpu_ns.map(|used| format!("on a processor {:.3} s, ", used as f64 / 1e9));
    format!(
        "{}off the processor {blocked:.3} s in {blocks} samples, run-queue wait {waited:.3} s in {waits}, {:.2} s recorded, {} lost",
        used.unwrap_or_default(),
        profile.meta.duration_ns as f64 / 1e9,
        profile.meta.lost_samples
    )
}
