//! The distribution of time: for each event its samples, and a table or trees.

use plumb_analyze::{Cost, Filter, KernelRow, Key, Report, Summary, Tree, View, WaitSums, coverage};
use plumb_profile::{EventId, Meta};

use crate::column::Column;
use crate::kernel_time;
use crate::meta::MetaDocument;
use crate::table::{CauseJson, CostJson, PlaceJson, RowJson, TreeJson, causes};
use crate::waits::WaitRow;

/// The samples of one event, and what is shown of them.
pub struct EventReport<'p> {
    /// The filtered samples, without idle waits.
    pub view: View<'p>,
    /// For blocked time, the sums by reason.
    pub waits: Option<WaitSums<'p>>,
    /// The table of idle waits, if any and if a table is shown.
    pub idle: Option<Report>,
    /// The filter.
    pub filter: Filter,
    /// The table or trees.
    pub body: ReportBody,
}

/// A table, or named trees.
pub enum ReportBody {
    /// A table.
    Rows(Report),
    /// Trees.
    Trees(Vec<(TreeKind, Tree)>),
}

/// The direction of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TreeKind {
    /// Calls, from the roots.
    TopDown,
    /// Callers, from the innermost functions.
    BottomUp,
    /// Callers of a function.
    Callers(String),
    /// Callees of a function.
    Callees(String),
}

impl<'p> EventReport<'p> {
    /// Returns the event; `None` if the profile has none.
    pub fn event(&self) -> Option<EventId> {
        self.filter.event.or_else(|| self.view.profile().events.iter().next().map(|(id, _)| id))
    }

    /// Returns the event's name, and its unit.
    pub fn event_name(&self) -> (&'p str, &'p str) {
        let profile = self.view.profile();
        let event = self.event().map(|event| &profile.events[event]);
        event.map_or(("", ""), |event| (profile.strings.get(event.name), profile.strings.get(event.unit)))
    }
}

document! {
    /// Reports of the events of a recording.
    pub struct ReportsDocument<'m> as "EventReports" of (
        meta: &'m Meta,
        warnings: Vec<String>,
        reports: Vec<EventReportDocument>,
    ) {
        #[serde(flatten)]
        facts: MetaDocument<'m> = MetaDocument::new(meta).with_warnings(warnings),
        reports: Vec<EventReportDocument> = reports,
    }
}

document! {
    /// The report of one event, whose rows these keys distinguish.
    pub struct EventReportDocument as "EventReport" of (report: &EventReport<'_>, keys: &[Key]) {
        event: String = report.event_name().0.to_owned(),
        unit: String = report.event_name().1.to_owned(),
        samples: u64 = report.view.recorded().samples,
        weight: u64 = report.view.recorded().weight,
        kept_samples: u64 = report.view.part().samples,
        kept_weight: u64 = report.view.part().weight,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        occurrences: Option<u64> = report.event().and_then(|event| report.view.meta().occurrences_of(event)),
        coverage_percent: Option<f64> = coverage(report.view.profile(), &report.filter),
        idle_percent: Option<f64> = report.view.meta().idle_share().map(|share| share * 100.0),
        #[serde(flatten)]
        stacks: StacksDocument = StacksDocument::new(&report.view, &Summary::new(&report.view)),
        /// The distribution of CPU time, if samples include the kernel.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        went_into: Vec<WentInto> = went_into(report),
        #[serde(flatten)]
        rows: Option<RowsDocument> = match &report.body {
            ReportBody::Rows(rows) => Some(RowsDocument::new(&report.view, rows, keys)),
            ReportBody::Trees(_) => None,
        },
        #[serde(skip_serializing_if = "Vec::is_empty")]
        trees: Vec<TreeJson> = match &report.body {
            ReportBody::Rows(_) => Vec::new(),
            ReportBody::Trees(trees) => trees.iter().map(|tree| tree_json(&report.view, tree)).collect(),
        },
        #[serde(flatten)]
        blocked: Option<BlockedDocument> =
            report.waits.as_ref().map(|waits| BlockedDocument::new(waits, report.idle.as_ref(), keys)),
    }
}

document! {
    struct StacksDocument as "StacksOfReport" of (view: &View<'_>, summary: &Summary) {
        complete_percent: Option<f64> = summary.complete_percent(),
        cut_causes: Vec<CauseJson> = causes(view, summary),
    }
}

document! {
    struct WentInto as "WentInto" of (row: KernelRow) {
        name: String = row.name,
        samples: u64 = row.cost.samples,
        weight: u64 = row.cost.weight,
    }
}

document! {
    struct RowsDocument as "RowsOfReport" of (view: &View<'_>, report: &Report, keys: &[Key]) {
        rows: Vec<RowJson> = report.rows.iter().map(|row| RowJson::new(view, row, keys)).collect(),
        rows_left_out: RowsLeftOut = RowsLeftOut::new(view, report),
    }
}

document! {
    struct RowsLeftOut as "RowsLeftOut" of (view: &View<'_>, report: &Report) {
        rows: usize = report.below.rows + report.unnamed.rows,
        self_percent: f64 = left_out(report).percent_of(view.whole()),
        self_weight: u64 = left_out(report).weight,
    }
}

document! {
    /// Reasons for waiting, and idle waits, which are in no other figure.
    struct BlockedDocument as "BlockedTime" of (waits: &WaitSums<'_>, idle: Option<&Report>, keys: &[Key]) {
        waits: Vec<WaitRow> = crate::waits::document(waits),
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        idle_rows: Option<Vec<RowJson>> =
            idle.map(|idle| idle.rows.iter().map(|row| RowJson::new(&waits.idle, row, keys)).collect()),
    }
}

fn left_out(report: &Report) -> Cost {
    [report.below.own, report.unnamed.own].into_iter().sum()
}

fn went_into(report: &EventReport<'_>) -> Vec<WentInto> {
    let time = kernel_time::section(&report.view, &report.filter);
    time.map_or(Vec::new(), |time| time.rows.into_iter().map(WentInto::new).collect())
}

fn tree_json(view: &View<'_>, (kind, tree): &(TreeKind, Tree)) -> TreeJson {
    let (kind, function) = match kind {
        TreeKind::TopDown => ("top-down", None),
        TreeKind::BottomUp => ("bottom-up", None),
        TreeKind::Callers(function) => ("callers", Some(function.clone())),
        TreeKind::Callees(function) => ("callees", Some(function.clone())),
    };
    TreeJson::new(view, kind, function, tree)
}

/// A line of CSV: a row, or a node of a tree.
pub struct CsvLine {
    event: String,
    /// Direction of the tree, and the node's index in it and that of its parent.
    node: Option<(&'static str, usize, Option<usize>)>,
    cost: CostJson,
    place: PlaceJson,
}

impl EventReportDocument {
    /// Returns the lines of CSV.
    pub fn csv_lines(self) -> Vec<CsvLine> {
        let event = self.event;
        let line = |node, cost, place| CsvLine { event: event.clone(), node, cost, place };
        let rows = self.rows.into_iter().flat_map(|rows| rows.rows);
        let mut lines: Vec<CsvLine> = rows.map(|row| line(None, row.cost, row.place)).collect();
        for TreeJson { kind, nodes, .. } in self.trees {
            let node = |(index, node): (usize, crate::table::NodeJson)| {
                line(Some((kind, index, node.parent)), node.cost, node.place)
            };
            lines.extend(nodes.into_iter().enumerate().map(node));
        }
        lines
    }
}

/// Returns the columns of CSV, of which a report has those of its kind and keys.
pub fn columns() -> [Column<CsvLine>; 17] {
    [
        Column::new("event", |line| line.event.as_str().into()),
        Column::new("tree", |line| line.node.map(|(kind, ..)| kind).into()),
        Column::new("node", |line| line.node.map(|(_, index, _)| index).into()),
        Column::new("parent", |line| line.node.and_then(|(.., parent)| parent).into()),
        Column::new("children_percent", |line| format!("{:.4}", line.cost.children_percent).into()),
        Column::new("self_percent", |line| format!("{:.4}", line.cost.self_percent).into()),
        Column::new("children_weight", |line| line.cost.children_weight.into()),
        Column::new("self_weight", |line| line.cost.self_weight.into()),
        Column::new("children_samples", |line| line.cost.children_samples.into()),
        Column::new("self_samples", |line| line.cost.self_samples.into()),
        Column::new("comm", |line| line.place.comm.as_deref().into()),
        Column::new("pid", |line| line.place.pid.into()),
        Column::new("tid", |line| line.place.tid.into()),
        Column::new("exe", |line| line.place.exe.as_deref().into()),
        Column::new("dso", |line| line.place.dso.as_deref().into()),
        Column::new("sym", |line| line.place.sym.as_deref().into()),
        Column::new("srcline", |line| line.place.srcline.as_deref().into()),
    ]
}
