//! The table of kernel time as JSON and CSV. Field names are stable.

use anyhow::Result;
use plumb_analyze::{Cause, Cost, Filter, KernelRow};
use plumb_call_watch::CallFindings;
use plumb_documents::advice::AdviceDocument;
use plumb_documents::column::write_csv;
use plumb_documents::json;
use plumb_documents::kernel::{KernelDocument, KernelTimeRow, columns};
use plumb_documents::kernel_calls::CountedDocument;

use super::{Args, Shown};
use crate::advice::processes;
use crate::terminal::Output;

/// Writes one JSON object; unmeasured values are null.
pub(super) fn json(
    shown: &Shown<'_>,
    calls: Option<&CallFindings>,
    filter: &Filter,
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let mut document = document(shown, args.stacks.unwrap_or(0));
    if let Some(calls) = calls {
        let processes = processes::json(shown.view.profile(), filter);
        let CallFindings { advice, seen, dropped, cost_percent, .. } = calls;
        document.advice = Some(AdviceDocument::new(advice, processes, *seen, *dropped, *cost_percent));
    }
    if let Some(counted) = &shown.counted {
        document.counted = Some(CountedDocument::new(&counted.all));
    }
    Ok(json::write(&document, &mut *out)?)
}

/// Writes one CSV line per row.
pub(super) fn csv(shown: &Shown<'_>, out: &mut Output<'_>) -> Result<()> {
    match document(shown, 0).rows {
        rows if rows.is_empty() => Ok(()),
        rows => Ok(write_csv(&columns(), &rows, out)?),
    }
}

/// The table, with rows of calls that have no sample.
fn document<'a>(shown: &'a Shown<'_>, stacks: usize) -> KernelDocument<'a> {
    let mut document = KernelDocument::new(&shown.view, &shown.time, stacks);
    let counted = shown.counted.as_ref();
    let unsampled = counted.into_iter().flat_map(|counted| counted.unsampled(|name| shown.has_row(name)));
    let row = |(name, cause): (&str, Cause)| KernelRow {
        name: name.to_owned(),
        cause,
        cost: Cost::default(),
        kinds: Vec::new(),
        stacks: Vec::new(),
    };
    document.rows.extend(unsampled.map(|one| KernelTimeRow::new(&shown.view, &shown.time, &row(one), 0)));
    document.rows.iter_mut().for_each(|row| row.count(|name| counted?.of_row(name)));
    document
}
