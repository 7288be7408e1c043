//! The table of lives on its way out.
//!
//! A shell loop makes tens of thousands of them, so a row has to cost few bytes: times are in microseconds, as
//! differences; an end that the next life of the same process tells is left out.

use plumb_profile::{End, Profile};

use super::column::Packing::{Delta, Dictionary, Plain};
use super::table::TableWriter;
use super::write::row;

/// The unit of times in the file.
pub(super) const NS_PER_US: u64 = 1000;

/// The table of [`Profile::lives`].
pub(super) fn table(profile: &Profile) -> TableWriter {
    let lives = profile.lives.rows();
    let us = |ns: Option<u64>| ns.map(|ns| ns / NS_PER_US);
    TableWriter::default()
        .u32s("pid", Delta, lives.iter().map(|life| life.pid))
        .optional_u32s("parent", Delta, lives.iter().map(|life| life.parent.map(row)))
        .u32s("exe", Dictionary, lives.iter().map(|life| row(life.exe)))
        .u32s("comm", Dictionary, lives.iter().map(|life| row(life.comm)))
        .texts("begin", Dictionary, lives.iter().map(|life| life.begin.name()))
        .texts("end", Dictionary, lives.iter().map(|life| life.end.name()))
        .optional_u64s("start_us", Delta, lives.iter().map(|life| us(life.start_ns)))
        .optional_u64s(
            "end_us",
            Delta,
            lives.iter().map(|life| us(life.end_ns.filter(|_| life.end != End::Exec))),
        )
        .optional_u64s("cpu_us", Plain, lives.iter().map(|life| us(life.cpu_ns)))
        .optional_u64s("peak_rss_bytes", Plain, lives.iter().map(|life| life.peak_rss_bytes))
        .optional_u32s("process", Delta, lives.iter().map(|life| life.process.map(row)))
}
