//! Writes the table of process lives.
//!
//! A shell loop creates tens of thousands, so a row must take few bytes: times are in microseconds, as
//! differences; an end that equals the start of the process' next life is left out.

use plumb_profile::{Life, LifeEnd, LifeId, Profile};

use super::column::Packing::{Delta, Dictionary, Plain};
use super::table::TableWriter;
use super::write::row;

/// The unit of times in the file.
pub(super) const NS_PER_US: u64 = 1000;

/// The table of [`Profile::lives`].
pub(super) fn table(profile: &Profile) -> TableWriter {
    of_rows(profile.lives.rows())
}

/// Builds the table of some lives in order.
pub(super) fn of_rows(lives: &[Life]) -> TableWriter {
    columns(lives.iter(), |life| life.end_ns.filter(|_| life.end != LifeEnd::Exec))
}

/// Builds the table of some of [`Profile::lives`], with an additional column for their row numbers.
pub(super) fn part(profile: &Profile, rows: &[LifeId]) -> TableWriter {
    let lives = rows.iter().map(|&id| &profile.lives[id]);
    // The next lives, which would have the ends, may not be included.
    columns(lives, |life| life.end_ns).u32s(ROW, Delta, rows.iter().map(|&id| row(id)))
}

/// The column with row numbers.
pub(super) const ROW: &str = "row";

fn columns<'l>(
    lives: impl Iterator<Item = &'l Life> + Clone,
    end_ns: impl Fn(&Life) -> Option<u64>,
) -> TableWriter {
    let lives = || lives.clone();
    let us = |ns: Option<u64>| ns.map(|ns| ns / NS_PER_US);
    TableWriter::default()
        .u32s("pid", Delta, lives().map(|life| life.pid))
        .optional_u32s("parent", Delta, lives().map(|life| life.parent.map(row)))
        .u32s("exe", Dictionary, lives().map(|life| row(life.exe)))
        .u32s("comm", Dictionary, lives().map(|life| row(life.comm)))
        .texts("begin", Dictionary, lives().map(|life| life.begin.name()))
        .texts("end", Dictionary, lives().map(|life| life.end.name()))
        .optional_u64s("start_us", Delta, lives().map(|life| us(life.start_ns)))
        .optional_u64s("end_us", Delta, lives().map(|life| us(end_ns(life))))
        .optional_u64s("cpu_us", Plain, lives().map(|life| us(life.cpu_ns)))
        .optional_u64s("peak_rss_bytes", Plain, lives().map(|life| life.peak_rss_bytes))
        .optional_u32s("process", Delta, lives().map(|life| life.process.map(row)))
}
