//! The report as JSON and CSV. Field names are stable; weights are in the event's unit.

use std::collections::BTreeSet;

use anyhow::Result;
use plumb_documents::column::{chosen, write_csv};
use plumb_documents::json;
use plumb_documents::report::{
    CsvLine, EventReport, EventReportDocument, ReportBody, ReportsDocument, columns,
};

use super::Args;
use crate::terminal::Output;

/// Columns of costs in CSV, before the keys.
const COSTS: &str = "children_percent self_percent children_weight self_weight children_samples self_samples";

/// Writes one JSON object with a report for each event.
pub fn json(reports: &[EventReport<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    let warnings: BTreeSet<String> = reports.iter().flat_map(|report| report.view.warnings()).collect();
    let documents = documents(reports, args).collect();
    Ok(json::write(&ReportsDocument::new(first.view.meta(), warnings.into_iter().collect(), documents), out)?)
}

/// Writes rows as CSV; trees as a line per node, with its parent's line number (the first after the head is 0).
pub fn csv(reports: &[EventReport<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let is_tree = reports.iter().any(|report| matches!(report.body, ReportBody::Trees(_)));
    let keys: Vec<&str> = args.sort.iter().map(|key| key.name()).collect();
    let keys = match is_tree {
        true => format!("event tree node parent {COSTS} comm dso sym"),
        false => format!("event {COSTS} {}", keys.join(" ")),
    };
    let lines: Vec<CsvLine> = documents(reports, args).flat_map(EventReportDocument::csv_lines).collect();
    Ok(write_csv(&chosen(&columns(), &keys), &lines, out)?)
}

fn documents(reports: &[EventReport<'_>], args: &Args) -> impl Iterator<Item = EventReportDocument> {
    reports.iter().map(|report| EventReportDocument::new(report, &args.sort))
}
