//! CPU time by cause, as a complete table.

use plumb_analyze::{Cost, KernelRow, KernelTime, NodeId, View};
use plumb_syscalls::Account;

use crate::advice::AdviceDocument;
use crate::column::Column;
use crate::kernel_calls::CountedDocument;
use crate::stack::FrameRow;

document! {
    /// The table, with this number of stacks per row.
    pub struct KernelDocument<'v> as "KernelTable" of (view: &'v View<'_>, time: &'v KernelTime, stacks: usize) {
        version: u32 = crate::JSON_VERSION,
        command: &'v [String] = &view.meta().command,
        recorder: &'v str = &view.meta().recorder,
        duration_ns: u64 = view.meta().duration_ns,
        frequency_hz: Option<u32> = view.meta().frequency_hz,
        samples: u64 = time.whole.samples,
        lost_samples: u64 = view.meta().lost_samples,
        #[serde(flatten)]
        sums: KernelSums = KernelSums::new(time),
        warnings: Vec<String> = view.warnings(),
        /// Rows, largest first.
        pub rows: Vec<KernelTimeRow> = time.rows.iter().map(|row| KernelTimeRow::new(view, time, row, stacks)).collect(),
        /// Counted calls, where a command counts any.
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        pub counted: Option<CountedDocument<'v>> = None,
        /// Advice, where a command gives any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(skip))]
        pub advice: Option<AdviceDocument> = None,
        /// The event, where the page asks.
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        pub of_event: Option<EventOfTable<'v>> = None,
    }
}

/// The event of a table's samples.
#[derive(serde::Serialize)]
pub struct EventOfTable<'v> {
    /// Name of the event; `None`: the table has several.
    pub event: Option<&'v str>,
    /// Unit of its weights.
    pub unit: Option<&'v str>,
}

document! {
    /// Sums over all rows except idle time.
    struct KernelSums as "KernelSums" of (time: &KernelTime) {
        total_ns: u64 = time.whole.weight,
        user_ns: u64 = time.whole.weight.saturating_sub(time.kernel.weight),
        kernel_ns: u64 = time.kernel.weight,
        rusage_ns: Option<u64> = time.accounted_ns,
        off_percent: Option<f64> = time.off_percent(),
        is_time: bool = time.is_time,
        kernel_named: bool = !time.nameless_kernel,
    }
}

document! {
    /// A cause of CPU time.
    pub struct KernelTimeRow as "KernelEntry" of (view: &View<'_>, time: &KernelTime, row: &KernelRow, stacks: usize) {
        name: String = row.name.clone(),
        cause: &'static str = row.cause.name(),
        cpu_ns: u64 = row.cost.weight,
        samples: u64 = row.cost.samples,
        percent: f64 = row.cost.percent_of(time.whole),
        kinds: Vec<KernelKind> = row.kinds.iter().map(KernelKind::new).collect(),
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        stacks: Option<Vec<KernelStack>> = (stacks > 0)
            .then(|| row.stacks.iter().take(stacks).map(|stack| KernelStack::new(view, stack)).collect()),
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        counts: Option<RowCounts> = None,
    }
}

document! {
    pub(crate) struct KernelKind as "KernelKind" of (kind: &(&'static str, Cost)) {
        name: &'static str = kind.0,
        cpu_ns: u64 = kind.1.weight,
        samples: u64 = kind.1.samples,
    }
}

document! {
    pub(crate) struct KernelStack as "KernelStack" of (view: &View<'_>, stack: &(NodeId, Cost)) {
        samples: u64 = stack.1.samples,
        cpu_ns: u64 = stack.1.weight,
        leaf_first: Vec<FrameRow> = FrameRow::of_stack(view, stack.0),
    }
}

document! {
    /// Counted calls of a row; null where nothing was counted.
    struct RowCounts as "RowCounts" of (account: Option<&Account>) {
        calls: Option<u64> = account.map(|account| account.calls),
        errors: Option<u64> = account.map(|account| account.failed),
        wall_ns: Option<u64> = account.and_then(|account| Some(account.times.as_ref()?.wall_ns)),
    }
}

impl KernelTimeRow {
    /// Adds what was counted of it.
    pub fn count<'a>(&mut self, of_row: impl FnOnce(&str) -> Option<&'a Account>) {
        self.counts = Some(RowCounts::new(of_row(&self.name)));
    }
}

/// Returns the columns of the rows.
pub fn columns() -> [Column<KernelTimeRow>; 8] {
    [
        Column::new("name", |row| row.name.as_str().into()),
        Column::new("cause", |row| row.cause.into()),
        Column::new("cpu_ns", |row| row.cpu_ns.into()),
        Column::new("samples", |row| row.samples.into()),
        Column::new("percent", |row| row.percent.into()),
        Column::new("calls", |row| row.counts.as_ref().and_then(|counts| counts.calls).into()),
        Column::new("errors", |row| row.counts.as_ref().and_then(|counts| counts.errors).into()),
        Column::new("wall_ns", |row| row.counts.as_ref().and_then(|counts| counts.wall_ns).into()),
    ]
}
