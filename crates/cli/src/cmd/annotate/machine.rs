//! The listing for programs: JSON. Field names are stable; weights are in the event's unit.

use anyhow::Result;
use plumb_documents::json;
use plumb_documents::listing::{FunctionListing, ListingDocument};

use crate::terminal::Output;

/// Writes one JSON object.
pub fn json(shown: &mut FunctionListing<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let event = shown.filter.event;
    let mut document =
        ListingDocument::new(shown.view, event, shown.function, shown.annotated, &mut shown.sources);
    document.notes = shown.notes();
    Ok(json::write(&document, out)?)
}
