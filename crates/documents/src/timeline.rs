//! The activity of threads over time.

use plumb_analyze::{Cost, Timeline, TimelineRow, View};
use plumb_profile::{EventId, Profile, Thread};

document! {
    /// The rows with their threads and events.
    pub struct TimelineDocument<'p> as "TimelineAnswer" of (view: &View<'p>, timeline: &'p Timeline) {
        version: u32 = crate::JSON_VERSION,
        duration_ns: u64 = timeline.duration_ns,
        /// Begin of the first bin.
        from_ns: u64 = timeline.from_ns,
        bin_ns: u64 = timeline.bin_ns,
        aggregated: bool = timeline.is_aggregated,
        rows: Vec<TimelineEntry<'p>> =
            timeline.rows.iter().map(|row| TimelineEntry::new(view.profile(), row)).collect(),
        threads_left_out: usize = timeline.left_out,
        left_out: Vec<TimelineRest<'p>> =
            timeline.left_out_costs.iter().map(|rest| TimelineRest::new(view.profile(), rest)).collect(),
    }
}

document! {
    /// The weights of a thread's samples of an event.
    pub(crate) struct TimelineEntry<'p> as "TimelineEntry" of (profile: &'p Profile, row: &'p TimelineRow) {
        comm: &'p str = profile.strings.get(profile.threads[row.thread].comm),
        pid: u32 = profile.processes[profile.threads[row.thread].process].pid,
        tid: u32 = profile.threads[row.thread].tid,
        exe: &'p str = exe(profile, &profile.threads[row.thread]),
        event: &'p str = event_name(profile, row.event),
        weight: u64 = row.total.weight,
        samples: u64 = row.total.samples,
        bins: &'p [u64] = &row.bins,
    }
}

document! {
    /// The samples of an event in threads without a row.
    pub(crate) struct TimelineRest<'p> as "TimelineRest" of (profile: &'p Profile, rest: &(EventId, Cost)) {
        event: &'p str = event_name(profile, rest.0),
        weight: u64 = rest.1.weight,
        samples: u64 = rest.1.samples,
    }
}

fn exe<'p>(profile: &'p Profile, thread: &Thread) -> &'p str {
    profile.strings.get(profile.processes[thread.process].exe)
}

fn event_name(profile: &Profile, event: EventId) -> &str {
    profile.strings.get(profile.events[event].name)
}
