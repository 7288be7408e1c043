//! The flat profile: own and total cost by function, file, line, thread or process.
//!
//! Own costs of all rows add up to the view's part exactly. Total costs count a sample once per row, however often
//! the row's function is on its stack.

mod key;
mod sums;

use std::cmp::Reverse;

pub(crate) use key::exe_text;
pub use key::{BadKey, Key, RowKey};

use crate::cost::Cost;
use crate::filter::Filter;
use crate::frame::{FrameIndex, Kind};
use crate::view::View;
use key::{FrameKeys, ThreadKeys};
use sums::RowSums;

/// The keys of rows, and which rows are shown.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The keys that distinguish rows, and their columns in order.
    pub keys: Vec<Key>,
    /// Whether rows are sorted by total cost, and kept if they have no own cost.
    pub children: bool,
    /// Rows below this share of the whole, in percent, are summed up instead of listed.
    pub min_percent: f64,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { keys: vec![Key::Comm, Key::Dso, Key::Symbol], children: true, min_percent: 0.0 }
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Subject of the row.
    pub key: RowKey,
    /// Whether all frames of the row are inlined calls.
    pub inlined: bool,
    /// Cost of the samples whose innermost frame is in the row.
    pub own: Cost,
    /// Cost of the samples with the row anywhere on their stack.
    pub total: Cost,
}

/// A report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rows, most expensive first.
    pub rows: Vec<Row>,
    /// Rows below the limit.
    pub below: Rest,
    /// Rows that do not match the filter's `dsos` and `symbols`.
    pub unnamed: Rest,
}

/// Rows that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Number of rows.
    pub rows: usize,
    /// Own cost of these rows.
    pub own: Cost,
}

impl Rest {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.own += row.own;
    }
}

impl Report {
    /// Creates the report. `filter` is the view's: if it selects files or functions, only their rows are listed.
    pub fn new(view: &View<'_>, filter: &Filter, options: &ReportOptions) -> Self {
        let mut rows = all_rows(view, &options.keys);
        let mut report = Report::default();
        let least = view.whole().weight as f64 * options.min_percent / 100.0;
        rows.retain(|row| {
            let cost = if options.children { row.total } else { row.own };
            let empty = !options.children && row.own.samples == 0;
            if !is_named(view, filter, &options.keys, row.key.frame) {
                report.unnamed.add(row);
                return false;
            }
            if empty || (cost.weight as f64) < least {
                if !empty {
                    report.below.add(row);
                }
                return false;
            }
            true
        });
        rows.sort_by_cached_key(|row| {
            let leading = if options.children { row.total } else { row.own };
            let names: Vec<_> = options.keys.iter().map(|&key| row.key.order(view, key)).collect();
            (Reverse(leading.weight), Reverse(row.own.weight), names, row.key)
        });
        report.rows = rows;
        report
    }
}

/// Whether the row matches the filter's files and functions, if it has any.
fn is_named(view: &View<'_>, filter: &Filter, keys: &[Key], frame: FrameIndex) -> bool {
    let frame = view.frame(frame);
    let dso = !keys.contains(&Key::Dso) && !keys.contains(&Key::Symbol)
        || filter.dsos.is_empty()
        || frame.kind != Kind::Marker && filter.dsos.iter().any(|p| p.matches_path(frame.dso_path));
    let symbol = !keys.contains(&Key::Symbol)
        || filter.symbols.is_empty()
        || filter.symbols.iter().any(|p| p.matches_function(&frame.name));
    dso && symbol
}

fn all_rows(view: &View<'_>, keys: &[Key]) -> Vec<Row> {
    let frames = FrameKeys::new(view, keys);
    let threads = ThreadKeys::new(view.profile(), keys);
    let costs = view.costs_by(|thread| threads.of(thread));
    let mut sums = RowSums::new(view, &frames, costs.iter().map(|&(_, node, _)| node));
    let mut rows = Vec::new();
    for group in costs.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(thread, ..)) = group.first() else { continue };
        let thread = threads.representative(thread);
        sums.add(group.iter().map(|&(_, node, cost)| (node, cost)));
        rows.extend(sums.take().map(|(key, own, total)| Row {
            key: RowKey { thread, frame: frames.representative(key) },
            inlined: frames.is_inlined(key),
            own,
            total,
        }));
    }
    rows
}
