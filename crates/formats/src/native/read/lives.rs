//! Reads the table of process lives.

use std::collections::HashMap;

use parquet::data_type::ByteArray;
use plumb_profile::{Begin, Id, Life, LifeEnd, LifeId, ProcessId, Profile, StringId};

use super::error::ReadError;
use super::tables::{optional_id, string};
use super::values::TableReader;
use crate::native::lives::{NS_PER_US, ROW};

/// The columns that both readers need.
struct Columns {
    pids: Vec<u32>,
    parents: Vec<Option<u32>>,
    exes: Vec<u32>,
    comms: Vec<u32>,
    begins: Vec<ByteArray>,
    ends: Vec<ByteArray>,
    starts: Vec<Option<u64>>,
    stops: Vec<Option<u64>>,
    times: Vec<Option<u64>>,
    peaks: Vec<Option<u64>>,
    processes: Vec<Option<u32>>,
}

impl Columns {
    fn read(table: &TableReader<'_>) -> Result<Self, ReadError> {
        Ok(Self {
            pids: table.u32s("pid")?,
            parents: table.optional_u32s("parent")?,
            exes: table.u32s("exe")?,
            comms: table.u32s("comm")?,
            begins: table.texts("begin")?,
            ends: table.texts("end")?,
            starts: table.optional_u64s("start_us")?,
            stops: table.optional_u64s("end_us")?,
            times: table.optional_u64s("cpu_us")?,
            peaks: table.optional_u64s("peak_rss_bytes")?,
            processes: table.optional_u32s("process")?,
        })
    }

    /// Returns the start and end of a row's life.
    fn begin_and_end(&self, table: &TableReader<'_>, row: usize) -> Result<(Begin, LifeEnd), ReadError> {
        let begin = Begin::from_name(table.text("begin", row, &self.begins[row])?)
            .ok_or_else(|| table.bad("begin", row, "unknown beginning"))?;
        let end = LifeEnd::from_name(table.text("end", row, &self.ends[row])?)
            .ok_or_else(|| table.bad("end", row, "unknown end"))?;
        Ok((begin, end))
    }
}

/// Reads the rows of a journal's segment with their ids. The recorder itself wrote them: their references are not checked.
pub(super) fn unchecked(table: &TableReader<'_>) -> Result<Vec<(LifeId, Life)>, ReadError> {
    let ids = table.u32s(ROW)?;
    let columns = Columns::read(table)?;
    let ns = |us: Option<u64>| us.map(|us| us.saturating_mul(NS_PER_US));
    let mut lives = Vec::with_capacity(ids.len());
    for (row, id) in ids.into_iter().enumerate() {
        let (begin, end) = columns.begin_and_end(table, row)?;
        let life = Life {
            pid: columns.pids[row],
            parent: columns.parents[row].map(|id| LifeId::from_index(id as usize)),
            exe: StringId::from_index(columns.exes[row] as usize),
            comm: StringId::from_index(columns.comms[row] as usize),
            begin,
            end,
            start_ns: ns(columns.starts[row]),
            end_ns: ns(columns.stops[row]),
            cpu_ns: ns(columns.times[row]),
            peak_rss_bytes: columns.peaks[row],
            process: columns.processes[row].map(|id| ProcessId::from_index(id as usize)),
        };
        lives.push((LifeId::from_index(id as usize), life));
    }
    Ok(lives)
}

pub(super) fn read(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    // Only in journals: the rows of new or changed lives.
    let known = table.u32s_if_there(ROW)?;
    let columns = Columns::read(table)?;
    let ns = |column, row: usize, us: Option<u64>| match us.map(|us| us.checked_mul(NS_PER_US)) {
        Some(None) => Err(table.bad(column, row, "no time that a clock could have shown")),
        ns => Ok(ns.flatten()),
    };
    // Lives ended by an exec, whose end is the start of the next life.
    let mut open: HashMap<u32, LifeId> = HashMap::new();
    for (row, &pid) in columns.pids.iter().enumerate() {
        let (begin, end) = columns.begin_and_end(table, row)?;
        let start_ns = ns("start_us", row, columns.starts[row])?;
        let before = open.remove(&pid).filter(|_| begin == Begin::Exec);
        if let Some(before) = before {
            profile.lives.get_mut(before).end_ns = start_ns;
        }
        let at = known.get(row).map_or(profile.lives.len(), |&at| at as usize);
        // Parents must be earlier rows, so every walk upwards ends.
        let earlier = |index: u64| profile.lives.check(index).filter(|id: &LifeId| id.index() < at);
        let life = Life {
            pid,
            parent: optional_id(table, "parent", row, columns.parents[row], earlier)?,
            exe: string(table, "exe", row, columns.exes[row], profile)?,
            comm: string(table, "comm", row, columns.comms[row], profile)?,
            begin,
            end,
            start_ns,
            end_ns: ns("end_us", row, columns.stops[row])?,
            cpu_ns: ns("cpu_us", row, columns.times[row])?,
            peak_rss_bytes: columns.peaks[row],
            process: optional_id(table, "process", row, columns.processes[row], |index| {
                profile.processes.check(index)
            })?,
        };
        let life = match profile.lives.check(at as u64) {
            Some(id) => {
                *profile.lives.get_mut(id) = life;
                continue;
            }
            None if at == profile.lives.len() => profile.lives.push(life),
            None => return Err(table.bad(ROW, row, "there are fewer rows before it")),
        };
        if end == LifeEnd::Exec {
            open.insert(pid, life);
        }
    }
    Ok(())
}
