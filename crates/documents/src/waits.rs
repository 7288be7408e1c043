//! Document on blocked threads: their waits by kind.

use plumb_analyze::{Cost, Filter, View, WaitKind, WaitSums};
use serde_json::{Value, json};

use crate::kernel_time::call_names;

/// Takes idle waits out of a view of the time that threads are blocked; `None`: it is of another event.
pub fn set_idle_aside<'p>(view: &mut View<'p>, filter: &Filter) -> Option<WaitSums<'p>> {
    WaitSums::set_idle_aside(view, filter, call_names(view.profile()))
}

/// The kinds, each with its share of all but idle, which has none.
pub fn document(waits: &WaitSums<'_>) -> Value {
    let whole = waits.whole();
    let one = |&(kind, cost): &(WaitKind, Cost)| {
        let percent = (kind != WaitKind::Idle).then(|| cost.percent_of(whole));
        json!({
            "kind": kind.name(),
            "title": kind.title(),
            "samples": cost.samples,
            "weight": cost.weight,
            "percent": percent,
        })
    };
    waits.kinds.iter().map(one).collect()
}
