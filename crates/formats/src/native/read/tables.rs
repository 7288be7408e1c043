//! One function per table: reads columns into the model's rows, and checks every id against the table it refers to.

use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoKind, Event, Frame, Function, Id, Line, Mapping, Process,
    Profile, Sample, StackId, StringId, Thread,
};

use super::error::ReadError;
use super::values::TableReader;
use crate::foreign::TOO_LARGE;
use crate::native::names;

/// Converts `found` to an id of the table that `check` belongs to.
fn id<I: Id>(
    table: &TableReader<'_>,
    column: &'static str,
    row: usize,
    found: u32,
    check: impl Fn(u64) -> Option<I>,
) -> Result<I, ReadError> {
    check(found.into())
        .ok_or_else(|| table.bad(column, row, format!("{found} is no row of the table it points to")))
}

/// Converts the id in an optional column, otherwise as [`id`].
pub(super) fn optional_id<I: Id>(
    table: &TableReader<'_>,
    column: &'static str,
    row: usize,
    found: Option<u32>,
    check: impl Fn(u64) -> Option<I>,
) -> Result<Option<I>, ReadError> {
    found.map(|found| id(table, column, row, found, check)).transpose()
}

/// Rejects a row that equals an earlier one: the rows after it would no longer have the ids that others use. `before`: number of
/// rows read before this table's.
fn same_row<I: Id>(
    table: &TableReader<'_>,
    column: &'static str,
    (row, before): (usize, usize),
    id: I,
) -> Result<(), ReadError> {
    match id.index() == before + row {
        true => Ok(()),
        false => Err(table.bad(column, row, format!("the same as row {}", id.index()))),
    }
}

/// Reads strings; `before` is the number read earlier. The empty string exists in any case.
pub(super) fn strings(
    table: &TableReader<'_>,
    before: usize,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    for (row, value) in table.texts("text")?.iter().enumerate() {
        let text = table.text("text", row, value)?;
        if before + row == 0 && !text.is_empty() {
            return Err(table.bad("text", row, "it must be empty"));
        }
        same_row(table, "text", (row, before), profile.strings.add(text))?;
    }
    Ok(())
}

pub(super) fn string(
    table: &TableReader<'_>,
    column: &'static str,
    row: usize,
    found: u32,
    profile: &Profile,
) -> Result<StringId, ReadError> {
    id(table, column, row, found, |index| profile.strings.check(index))
}

pub(super) fn events(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let (names, units) = (table.u32s("name")?, table.u32s("unit")?);
    for (row, (name, unit)) in names.into_iter().zip(units).enumerate() {
        let name = string(table, "name", row, name, profile)?;
        let unit = string(table, "unit", row, unit, profile)?;
        profile.events.push(Event { name, unit });
    }
    Ok(())
}

pub(super) fn dsos(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let before = profile.dsos.len();
    let paths = table.u32s("path")?;
    let build_ids = table.optional_bytes("build_id")?;
    let kinds = table.texts("kind")?;
    let pids = table.optional_u32s("pid")?;
    let spaces = table.texts("addresses")?;
    let is_script = table.bools_if_there("is_script")?;
    for (row, path) in paths.into_iter().enumerate() {
        let path = string(table, "path", row, path, profile)?;
        let build_id = match &build_ids[row] {
            Some(bytes) => Some(
                BuildId::new(bytes.data())
                    .ok_or_else(|| table.bad("build_id", row, "not a build id's length"))?,
            ),
            None => None,
        };
        let mut kind = names::dso_kind(table.text("kind", row, &kinds[row])?, pids[row])
            .ok_or_else(|| table.bad("kind", row, "unknown kind"))?;
        let mut addresses = names::address_space(table.text("addresses", row, &spaces[row])?)
            .ok_or_else(|| table.bad("addresses", row, "unknown address space"))?;
        if is_script.get(row) == Some(&true) {
            (kind, addresses) = (DsoKind::Script, AddressSpace::Line);
        }
        same_row(table, "path", (row, before), profile.dsos.add(Dso { path, build_id, kind, addresses }))?;
    }
    Ok(())
}

pub(super) fn processes(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let (pids, ppids, exes) = (table.u32s("pid")?, table.u32s("ppid")?, table.u32s("exe")?);
    for (row, exe) in exes.into_iter().enumerate() {
        let exe = string(table, "exe", row, exe, profile)?;
        profile.processes.push(Process { pid: pids[row], ppid: ppids[row], exe });
    }
    Ok(())
}

pub(super) fn threads(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let (processes, tids, comms) = (table.u32s("process")?, table.u32s("tid")?, table.u32s("comm")?);
    for (row, process) in processes.into_iter().enumerate() {
        let process = id(table, "process", row, process, |index| profile.processes.check(index))?;
        let comm = string(table, "comm", row, comms[row], profile)?;
        profile.threads.push(Thread { process, tid: tids[row], comm });
    }
    Ok(())
}

pub(super) fn mappings(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let (processes, dsos) = (table.u32s("process")?, table.u32s("dso")?);
    let (starts, ends, biases) = (table.u64s("start")?, table.u64s("end")?, table.u64s("bias")?);
    for (row, process) in processes.into_iter().enumerate() {
        let process = id(table, "process", row, process, |index| profile.processes.check(index))?;
        let dso = id(table, "dso", row, dsos[row], |index| profile.dsos.check(index))?;
        let (start, end, bias) = (starts[row], ends[row], biases[row]);
        if end < start {
            return Err(table.bad("end", row, "before its start"));
        }
        profile.mappings.push(Mapping { process, dso, start, end, bias });
    }
    Ok(())
}

pub(super) fn frames(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let before = profile.frames.len();
    let (kinds, cuts) = (table.texts("kind")?, table.optional_bytes("cut")?);
    let (dsos, addresses) = (table.optional_u32s("dso")?, table.u64s("address")?);
    let (is_return, founds) = (table.bools("is_return")?, table.texts("found")?);
    for (row, address) in addresses.into_iter().enumerate() {
        let cut = match &cuts[row] {
            Some(cut) => Some(table.text("cut", row, cut)?),
            None => None,
        };
        let kind = names::frame_kind(table.text("kind", row, &kinds[row])?, cut)
            .ok_or_else(|| table.bad("kind", row, "unknown kind or reason"))?;
        let found = names::found(table.text("found", row, &founds[row])?)
            .ok_or_else(|| table.bad("found", row, "unknown way of finding frames"))?;
        let dso = optional_id(table, "dso", row, dsos[row], |index| profile.dsos.check(index))?;
        let frame = Frame { kind, dso, address: Address(address), is_return: is_return[row], found };
        same_row(table, "address", (row, before), profile.frames.add(frame))?;
    }
    Ok(())
}

pub(super) fn functions(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let before = profile.symbols.functions.len();
    let (names, linkage_names) = (table.u32s("name")?, table.u32s("linkage_name")?);
    let (dsos, starts) = (table.optional_u32s("dso")?, table.optional_u64s("start")?);
    let (source_files, start_lines) = (table.u32s("source_file")?, table.u32s_if_there("start_line")?);
    for (row, name) in names.into_iter().enumerate() {
        let function = Function {
            name: string(table, "name", row, name, profile)?,
            linkage_name: string(table, "linkage_name", row, linkage_names[row], profile)?,
            dso: optional_id(table, "dso", row, dsos[row], |index| profile.dsos.check(index))?,
            start: starts[row].map(Address),
            source_file: string(table, "source_file", row, source_files[row], profile)?,
            start_line: start_lines.get(row).copied().unwrap_or(0),
        };
        same_row(table, "name", (row, before), profile.symbols.functions.add(function))?;
    }
    Ok(())
}

pub(super) fn lines(table: &TableReader<'_>, profile: &mut Profile) -> Result<(), ReadError> {
    let (frames, functions) = (table.u32s("frame")?, table.u32s("function")?);
    let (files, numbers, inlined) = (table.u32s("file")?, table.u32s("line")?, table.bools("inlined")?);
    let mut of_frame: Vec<Line> = Vec::new();
    for (row, &frame) in frames.iter().enumerate() {
        let frame_id = id(table, "frame", row, frame, |index| profile.frames.check(index))?;
        let function =
            id(table, "function", row, functions[row], |index| profile.symbols.functions.check(index))?;
        let file = string(table, "file", row, files[row], profile)?;
        of_frame.push(Line { function, file, line: numbers[row], inlined: inlined[row] });
        match frames.get(row + 1) {
            Some(&next) if next == frame => {}
            Some(&next) if next < frame => return Err(table.bad("frame", row + 1, "not in ascending order")),
            _ => {
                profile.symbols.set(frame_id, &of_frame);
                of_frame.clear();
            }
        }
    }
    Ok(())
}

/// Maps the rows of a stack table to the profile's stacks.
pub(super) struct StackIds {
    ids: Vec<StackId>,
    may_repeat: bool,
}

impl StackIds {
    /// Starts empty. `may_repeat`: a row may equal an earlier one, and then maps to the same stack.
    pub fn new(may_repeat: bool) -> Self {
        Self { ids: Vec::new(), may_repeat }
    }

    fn check(&self, index: u64) -> Option<StackId> {
        self.ids.get(usize::try_from(index).ok()?).copied()
    }
}

pub(super) fn stacks(
    table: &TableReader<'_>,
    known: &mut StackIds,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    let (callers, frames) = (table.optional_u32s("caller")?, table.u32s("frame")?);
    for (row, frame) in frames.into_iter().enumerate() {
        // Callers must be earlier rows, so every walk ends.
        let caller = optional_id(table, "caller", row, callers[row], |index| known.check(index))?;
        let frame = id(table, "frame", row, frame, |index| profile.frames.check(index))?;
        let id = profile.stacks.add(caller, frame);
        if !known.may_repeat {
            same_row(table, "frame", (row, known.ids.len() - row), id)?;
        }
        known.ids.push(id);
    }
    Ok(())
}

pub(super) fn samples(
    table: &TableReader<'_>,
    known: &StackIds,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    let (times, threads, cpus) = (table.u64s("time_ns")?, table.u32s("thread")?, table.u32s("cpu")?);
    let (events, stacks) = (table.u32s("event")?, table.optional_u32s("stack")?);
    let (weights, syscalls) = (table.u64s("weight")?, table.optional_u32s_if_there("syscall")?);
    let mut total = 0_u64;
    for (row, time_ns) in times.into_iter().enumerate() {
        // Sums must not overflow.
        total = total.checked_add(weights[row]).ok_or_else(|| table.bad("weight", row, TOO_LARGE))?;
        profile.samples.push(Sample {
            time_ns,
            thread: id(table, "thread", row, threads[row], |index| profile.threads.check(index))?,
            cpu: cpus[row],
            event: id(table, "event", row, events[row], |index| profile.events.check(index))?,
            stack: optional_id(table, "stack", row, stacks[row], |index| known.check(index))?,
            syscall: syscalls.get(row).copied().flatten(),
            weight: weights[row],
        });
    }
    Ok(())
}
