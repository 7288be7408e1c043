//! Writes the table of user registers.
//!
//! The table exists only if registers were recorded: a recording without them looks as older versions wrote it.

use std::io::{Seek, Write};

use plumb_profile::{Profile, REGISTERS};
use zip::ZipWriter;

use super::column::Packing::{Delta, Dictionary, Plain};
use super::table::TableWriter;
use super::write::{self, WriteError, row};

const ENTRY: &str = "registers.parquet";

/// The register columns, by DWARF number.
pub(super) const NAMES: [&str; REGISTERS] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// Adds the table, unless it is empty.
pub(super) fn add<W: Write + Seek>(profile: &Profile, archive: &mut ZipWriter<W>) -> Result<(), WriteError> {
    let rows = profile.registers.rows();
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = TableWriter::default()
        .u64s("time_ns", Delta, rows.iter().map(|row| row.time_ns))
        .u32s("thread", Dictionary, rows.iter().map(|of| row(of.thread)))
        .u32s("event", Dictionary, rows.iter().map(|of| row(of.event)))
        .u32s("frame", Dictionary, rows.iter().map(|of| row(of.frame)))
        .u64s("ip", Dictionary, rows.iter().map(|row| row.ip));
    for (number, name) in NAMES.into_iter().enumerate() {
        table = table.u64s(name, Plain, rows.iter().map(|row| row.values[number]));
    }
    write::add_table(archive, ENTRY, table)
}
