//! Document on blocked threads: their waits by kind.

use plumb_analyze::{Cost, Filter, View, WaitKind, WaitSums};

use crate::kernel_time::call_names;

/// Takes idle waits out of a view of the time that threads are blocked; `None`: it is of another event.
pub fn set_idle_aside<'p>(view: &mut View<'p>, filter: &Filter) -> Option<WaitSums<'p>> {
    WaitSums::set_idle_aside(view, filter, call_names(view.profile()))
}

document! {
    /// Waits of a kind, with its share of all but idle, which has none.
    pub struct WaitRow as "WaitKind" of (kind: WaitKind, cost: Cost, whole: Cost) {
        kind: &'static str = kind.name(),
        title: &'static str = kind.title(),
        samples: u64 = cost.samples,
        weight: u64 = cost.weight,
        percent: Option<f64> = (kind != WaitKind::Idle).then(|| cost.percent_of(whole)),
    }
}

/// Returns the kinds of waits.
pub fn document(waits: &WaitSums<'_>) -> Vec<WaitRow> {
    waits.kinds.iter().map(|&(kind, cost)| WaitRow::new(kind, cost, waits.whole())).collect()
}
