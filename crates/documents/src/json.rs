//! JSON of a document: its names in alphabetical order.

use std::io;

use serde::Serialize;

/// Writes a document in one line.
pub fn write(document: &impl Serialize, mut out: impl io::Write) -> io::Result<()> {
    plumb_formats::json::write(&mut out, &serde_json::to_value(document)?)?;
    writeln!(out)
}

/// Writes a document over several lines.
pub fn write_pretty(document: &impl Serialize, mut out: impl io::Write) -> io::Result<()> {
    plumb_formats::json::write_pretty(&mut out, &serde_json::to_value(document)?)?;
    writeln!(out)
}
