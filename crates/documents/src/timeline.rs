//! The activity of threads over time.

use plumb_analyze::{Cost, Timeline, View};
use plumb_profile::{EventId, Profile};
use serde_json::{Value, json};

/// Returns the rows with their threads and events.
pub fn document(view: &View<'_>, timeline: &Timeline) -> Value {
    let profile = view.profile();
    let rows = timeline.rows.iter().map(|row| {
        let thread = &profile.threads[row.thread];
        let process = &profile.processes[thread.process];
        json!({
            "comm": profile.strings.get(thread.comm),
            "pid": process.pid,
            "tid": thread.tid,
            "exe": profile.strings.get(process.exe),
            "event": event_name(profile, row.event),
            "weight": row.total.weight,
            "samples": row.total.samples,
            "bins": row.bins,
        })
    });
    let left_out = |&(event, cost): &(EventId, Cost)| json!({"event": event_name(profile, event), "weight": cost.weight, "samples": cost.samples});
    json!({
        "version": crate::JSON_VERSION,
        "duration_ns": timeline.duration_ns,
        "from_ns": timeline.from_ns,
        "bin_ns": timeline.bin_ns,
        "aggregated": timeline.is_aggregated,
        "rows": rows.collect::<Vec<_>>(),
        "threads_left_out": timeline.left_out,
        "left_out": timeline.left_out_costs.iter().map(left_out).collect::<Vec<_>>(),
    })
}

fn event_name(profile: &Profile, event: EventId) -> &str {
    profile.strings.get(profile.events[event].name)
}
