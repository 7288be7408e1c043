//! The report as JSON and CSV. Field names are stable; weights are in the event's unit.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Cost, KernelRow, Report, Summary, Tree, View};
use plumb_formats::csv::field;
use serde::Serialize;

use super::shown::{Body, Shown, TreeKind};
use super::{Args, header};
use crate::terminal::Output;
use plumb_documents::kernel_time;
use plumb_documents::table::{CauseJson, CostJson, RowJson, TreeJson, causes};

/// Writes one JSON object with a report for each event.
pub fn json(shown: &[Shown<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let reports: Vec<_> = shown.iter().map(|shown| ReportJson::new(shown, args)).collect();
    let Some(meta) = shown.first().map(|shown| shown.view.meta()) else { return Ok(()) };
    let mut document = plumb_documents::meta::document(meta);
    let warnings: BTreeSet<String> = shown.iter().flat_map(|shown| shown.view.warnings()).collect();
    document["warnings"] = warnings.into_iter().collect();
    document["reports"] = serde_json::to_value(reports)?;
    plumb_formats::json::write(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

#[derive(Serialize)]
struct ReportJson {
    event: String,
    unit: String,
    samples: u64,
    weight: u64,
    kept_samples: u64,
    kept_weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<u64>,
    coverage_percent: Option<f64>,
    idle_percent: Option<f64>,
    #[serde(flatten)]
    stacks: StacksJson,
    /// The distribution of CPU time, if samples include the kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    went_into: Vec<WentIntoJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<RowJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_left_out: Option<RestJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trees: Vec<TreeJson>,
    #[serde(flatten)]
    blocked: BlockedJson,
}

#[derive(Serialize)]
struct StacksJson {
    complete_percent: Option<f64>,
    cut_causes: Vec<CauseJson>,
}

/// Fields for an event of blocked time.
#[derive(Default, Serialize)]
struct BlockedJson {
    /// The reasons for waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<serde_json::Value>,
    /// Idle waits, which are in no other figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_rows: Option<Vec<RowJson>>,
}

#[derive(Serialize)]
struct WentIntoJson {
    name: String,
    samples: u64,
    weight: u64,
}

#[derive(Serialize)]
struct RestJson {
    rows: usize,
    self_percent: f64,
    self_weight: u64,
}

impl ReportJson {
    fn new(shown: &Shown<'_>, args: &Args) -> Self {
        let view = &shown.view;
        let summary = Summary::new(view);
        let (event, unit) = header::event_name(shown);
        let (whole, part) = (view.recorded(), view.part());
        let mut json = ReportJson {
            event: event.into(),
            unit: unit.into(),
            samples: whole.samples,
            weight: whole.weight,
            kept_samples: part.samples,
            kept_weight: part.weight,
            occurrences: header::event(shown).and_then(|event| view.meta().occurrences_of(event)),
            coverage_percent: plumb_analyze::coverage(view.profile(), &shown.filter),
            idle_percent: view.meta().idle_share().map(|share| share * 100.0),
            stacks: StacksJson {
                complete_percent: summary.complete_percent(),
                cut_causes: causes(view, &summary),
            },
            went_into: went_into(shown),
            rows: None,
            rows_left_out: None,
            trees: Vec::new(),
            blocked: blocked(shown, args),
        };
        match &shown.body {
            Body::Rows(report) => {
                let row = |row: &plumb_analyze::Row| RowJson::new(view, row, &args.sort);
                json.rows = Some(report.rows.iter().map(row).collect());
                let (below, unnamed) = (report.below, report.unnamed);
                let own = [below.own, unnamed.own].into_iter().sum::<Cost>();
                json.rows_left_out = Some(RestJson {
                    rows: below.rows + unnamed.rows,
                    self_percent: own.percent_of(view.whole()),
                    self_weight: own.weight,
                });
            }
            Body::Trees(trees) => {
                json.trees = trees.iter().map(|(kind, tree)| tree_json(view, kind, tree)).collect();
            }
        }
        json
    }
}

/// Idle waits and kinds of waits.
fn blocked(shown: &Shown<'_>, args: &Args) -> BlockedJson {
    let Some(waits) = &shown.waits else { return BlockedJson::default() };
    let rows =
        |idle: &Report| idle.rows.iter().map(|row| RowJson::new(&waits.idle, row, &args.sort)).collect();
    BlockedJson {
        waits: Some(plumb_documents::waits::document(waits)),
        idle_rows: shown.idle.as_ref().map(rows),
    }
}

/// The distribution of CPU time.
fn went_into(shown: &Shown<'_>) -> Vec<WentIntoJson> {
    let rows = kernel_time::section(&shown.view, &shown.filter).map_or(Vec::new(), |time| time.rows);
    let json =
        |row: KernelRow| WentIntoJson { name: row.name, samples: row.cost.samples, weight: row.cost.weight };
    rows.into_iter().map(json).collect()
}

fn tree_json(view: &View<'_>, kind: &TreeKind, tree: &Tree) -> TreeJson {
    let (kind, function) = match kind {
        TreeKind::TopDown => ("top-down", None),
        TreeKind::BottomUp => ("bottom-up", None),
        TreeKind::Callers(function) => ("callers", Some(function.clone())),
        TreeKind::Callees(function) => ("callees", Some(function.clone())),
    };
    TreeJson::new(view, kind, function, tree)
}

/// Writes rows as CSV; trees as a line per node, with its parent's line number (the first after the head is 0).
pub fn csv(shown: &[Shown<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let is_tree = shown.iter().any(|shown| matches!(shown.body, Body::Trees(_)));
    let costs = [
        "children_percent",
        "self_percent",
        "children_weight",
        "self_weight",
        "children_samples",
        "self_samples",
    ];
    let mut head = vec!["event"];
    if is_tree {
        head.extend(["tree", "node", "parent"]);
    }
    head.extend(costs);
    match is_tree {
        true => head.extend(["comm", "dso", "sym"]),
        false => head.extend(args.sort.iter().map(|key| key.name())),
    }
    csv.write_record(&head)?;
    for shown in shown {
        match &shown.body {
            Body::Rows(report) => {
                for row in &report.rows {
                    let mut record = vec![field(header::event_name(shown).0).into_owned()];
                    record.extend(cost_cells(&CostJson::new(&shown.view, row.own, row.total)));
                    record.extend(
                        args.sort.iter().map(|&key| field(&row.key.text(&shown.view, key)).into_owned()),
                    );
                    csv.write_record(&record)?;
                }
            }
            Body::Trees(trees) => {
                for (kind, tree) in trees {
                    let tree = tree_json(&shown.view, kind, tree);
                    csv_tree(&mut csv, header::event_name(shown).0, &tree)?;
                }
            }
        }
    }
    csv.flush()?;
    Ok(())
}

fn csv_tree<W: Write>(csv: &mut csv::Writer<W>, event: &str, tree: &TreeJson) -> Result<()> {
    for (index, node) in tree.nodes.iter().enumerate() {
        let parent = node.parent.map_or(String::new(), |parent| parent.to_string());
        let mut record = vec![field(event).into_owned(), tree.kind.to_owned(), index.to_string(), parent];
        record.extend(cost_cells(&node.cost));
        let place = &node.place;
        record.extend(
            [&place.comm, &place.dso, &place.sym]
                .map(|cell| field(cell.as_deref().unwrap_or_default()).into_owned()),
        );
        csv.write_record(&record)?;
    }
    Ok(())
}

fn cost_cells(cost: &CostJson) -> [String; 6] {
    [
        format!("{:.4}", cost.children_percent),
        format!("{:.4}", cost.self_percent),
        cost.children_weight.to_string(),
        cost.self_weight.to_string(),
        cost.children_samples.to_string(),
        cost.self_samples.to_string(),
    ]
}
