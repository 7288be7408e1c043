//! Reads an unfinished recording: the complete segments of its journal.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use plumb_profile::{DsoId, Id, Life, LifeId, Mapping, ProcessId, Profile, Samples};

use super::archive::{self, Archive};
use super::error::ReadError;
use super::lives;
use super::tables::{self, StackIds};
use super::values::Budget;
use crate::native::journal::{HEADER, Kind, MAGIC, Segment};
use crate::native::write::SampleRow;

/// The readable extent of an unfinished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Number of complete segments.
    pub segments: usize,
    /// Number of bytes after them, which are ignored: a segment that was being written, or damage.
    pub cut_bytes: u64,
}

/// Reads the journal of a recording in progress, or unfinished, up to its last complete segment.
///
/// Samples are sorted by time. Memory is bounded as for [`read`](fn@super::read).
pub fn read_unfinished<R: Read + Seek>(mut input: R) -> Result<(Profile, Unfinished), ReadError> {
    let failed = |error| ReadError::Input { error };
    let size = input.seek(SeekFrom::End(0)).map_err(failed)?;
    input.rewind().map_err(failed)?;
    let budget = archive::budget(size);
    let mut start = [0; MAGIC.len()];
    let is_whole = read_whole(&mut input, &mut start).map_err(failed)?;
    if !is_whole || start != MAGIC {
        return Err(ReadError::NothingWhole { size });
    }
    let (mut reading, mut at, mut segments) = (Reading::new(), MAGIC.len() as u64, 0);
    while let Some((segment, bytes)) = next(&mut input, size - at).map_err(failed)? {
        reading.take(segment.kind, bytes, &budget)?;
        at += HEADER as u64 + segment.size;
        segments += 1;
    }
    if segments == 0 {
        return Err(ReadError::NothingWhole { size });
    }
    Ok((reading.finish(), Unfinished { segments, cut_bytes: size - at }))
}

/// Fills `to`; returns whether there was enough.
fn read_whole(input: &mut impl Read, to: &mut [u8]) -> std::io::Result<bool> {
    match input.read_exact(to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the next segment, if it is complete. `left`: bytes up to the end of the input.
fn next(input: &mut impl Read, left: u64) -> std::io::Result<Option<(Segment, Vec<u8>)>> {
    let mut header = [0; HEADER];
    if !read_whole(input, &mut header)? {
        return Ok(None);
    }
    let Some(segment) = Segment::of_header(&header).filter(|segment| segment.size <= left) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    input.take(segment.size).read_to_end(&mut bytes)?;
    Ok(segment.is_of(&bytes).then_some((segment, bytes)))
}

/// A journal being read.
struct Reading {
    profile: Profile,
    strings: usize,
    /// Stacks and samples of the part that may still be replaced.
    stacks: StackIds,
    samples: Samples,
}

impl Reading {
    fn new() -> Self {
        let (profile, samples) = (Profile::default(), Samples::default());
        Self { profile, strings: 0, stacks: StackIds::new(true), samples }
    }

    fn take(&mut self, kind: Kind, bytes: Vec<u8>, budget: &Rc<Budget>) -> Result<(), ReadError> {
        let size = bytes.len() as u64;
        let mut archive = Archive::open_within(Cursor::new(bytes), size, Rc::clone(budget))?;
        self.profile.meta = archive.meta()?.0;
        super::named(&mut archive, self.strings, &mut self.profile)?;
        self.strings = self.profile.strings.len();
        if kind == Kind::Part {
            // The part as a whole: rows written earlier may have changed.
            self.stacks = StackIds::new(true);
            self.samples = Samples::default();
        }
        tables::stacks(&archive.table("stacks")?, &mut self.stacks, &mut self.profile)?;
        std::mem::swap(&mut self.profile.samples, &mut self.samples);
        let read = tables::samples(&archive.table("samples")?, &self.stacks, &mut self.profile);
        std::mem::swap(&mut self.profile.samples, &mut self.samples);
        read?;
        if kind == Kind::Part {
            self.end_part();
        }
        Ok(())
    }

    fn end_part(&mut self) {
        self.stacks = StackIds::new(true);
        std::mem::take(&mut self.samples).iter().for_each(|sample| self.profile.samples.push(sample));
    }

    fn finish(mut self) -> Profile {
        self.end_part();
        self.profile.samples.sort_by_time();
        self.profile
    }
}

/// Reads the stack table of a part, with its own numbering.
pub(in crate::native) fn part_stacks(bytes: Vec<u8>) -> Result<(Vec<Option<u32>>, Vec<u32>), ReadError> {
    let mut archive = part(bytes)?;
    let table = archive.table("stacks")?;
    Ok((table.optional_u32s("caller")?, table.u32s("frame")?))
}

/// Reads the sample table of a part, which refers to its own stacks.
pub(in crate::native) fn part_samples(bytes: Vec<u8>) -> Result<Vec<SampleRow>, ReadError> {
    let mut archive = part(bytes)?;
    let table = archive.table("samples")?;
    let (times, threads, cpus) = (table.u64s("time_ns")?, table.u32s("thread")?, table.u32s("cpu")?);
    let (events, stacks) = (table.u32s("event")?, table.optional_u32s("stack")?);
    let (weights, syscalls) = (table.u64s("weight")?, table.optional_u32s("syscall")?);
    let row = |(row, time_ns)| SampleRow {
        time_ns,
        thread: threads[row],
        cpu: cpus[row],
        event: events[row],
        stack: stacks[row],
        weight: weights[row],
        syscall: syscalls[row],
    };
    Ok(times.into_iter().enumerate().map(row).collect())
}

/// Reads the lives of a segment, as the recorder wrote them: their references are not checked.
pub(in crate::native) fn part_lives(bytes: Vec<u8>) -> Result<Vec<(LifeId, Life)>, ReadError> {
    let mut archive = part(bytes)?;
    lives::unchecked(&archive.table("lives")?)
}

/// Reads the mappings of a segment, also unchecked.
pub(in crate::native) fn part_mappings(bytes: Vec<u8>) -> Result<Vec<Mapping>, ReadError> {
    let mut archive = part(bytes)?;
    let table = archive.table("mappings")?;
    let (processes, dsos) = (table.u32s("process")?, table.u32s("dso")?);
    let (starts, ends, biases) = (table.u64s("start")?, table.u64s("end")?, table.u64s("bias")?);
    let mapping = |(row, process): (usize, u32)| Mapping {
        process: ProcessId::from_index(process as usize),
        dso: DsoId::from_index(dsos[row] as usize),
        start: starts[row],
        end: ends[row],
        bias: biases[row],
    };
    Ok(processes.into_iter().enumerate().map(mapping).collect())
}

fn part(bytes: Vec<u8>) -> Result<Archive<Cursor<Vec<u8>>>, ReadError> {
    let size = bytes.len() as u64;
    Archive::open_within(Cursor::new(bytes), size, archive::budget(size))
}
