//! A recording in progress: new data is appended to a file from time to time, so that little is lost if the recorder is
//! killed, and stacks and samples already written need not stay in memory.
//!
//! The file begins with [`MAGIC`]; segments follow. A segment has a header (kind, size and digest of the rest) and an archive like that of
//! a recording, with the new rows of each table. Stacks and samples come in *parts*: each part numbers its stacks
//! from 0, so that none of it is needed when the next begins. A segment of one kind has the new rows of the current part; one of the
//! other kind has a part in its final form, which replaces its earlier segments.
//!
//! At the end a [`Journal`] writes all of it as one recording.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use parquet::errors::ParquetError;
use plumb_profile::{Id, Life, LifeId, Meta, Profile};
use twox_hash::XxHash3_64;
use zip::ZipWriter;

use super::lives;
use super::read::{part_lives, part_mappings, part_samples, part_stacks};
use super::registers;
use super::table::{TableFile, TableWriter};
use super::version::{IN_PARTS, VERSION};
use super::write::{
    self, LIVES, MAPPINGS, Rows, SAMPLES, STACKS, SampleRow, TABLES, WriteError, mapping_table, sample_rows,
    sample_table, stack_rows, stack_table,
};

/// Start of a journal: the name of the format and its version.
pub(super) const MAGIC: [u8; 16] = *b"plumb journal 1\n";
/// Size of a segment's header.
pub(super) const HEADER: usize = 8 + 8 + 8;

/// Rows per group, for tables written in groups.
const GROUP: usize = 1 << 16;

/// The kind of a segment, by its stacks and samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The new rows of the current part.
    Growth,
    /// A finished part in its final form.
    Part,
}

impl Kind {
    fn word(self) -> [u8; 8] {
        match self {
            Kind::Growth => *b"growth\0\0",
            Kind::Part => *b"part\0\0\0\0",
        }
    }
}

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub kind: Kind,
    /// Number of bytes after the header.
    pub size: u64,
    digest: u64,
}

impl Segment {
    fn new(kind: Kind, bytes: &[u8]) -> Self {
        Self { kind, size: bytes.len() as u64, digest: XxHash3_64::oneshot(bytes) }
    }

    /// Parses a header; `None` if it is invalid.
    pub fn of_header(header: &[u8; HEADER]) -> Option<Self> {
        let (word, rest) = header.split_first_chunk::<8>()?;
        let kind = [Kind::Growth, Kind::Part].into_iter().find(|kind| kind.word() == *word)?;
        let (size, rest) = rest.split_first_chunk()?;
        let size = u64::from_le_bytes(*size);
        Some(Self { kind, size, digest: u64::from_le_bytes(*rest.first_chunk()?) })
    }

    fn header(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.kind.word());
        header[8..16].copy_from_slice(&self.size.to_le_bytes());
        header[16..].copy_from_slice(&self.digest.to_le_bytes());
        header
    }

    /// Whether it is the header of `bytes`.
    pub fn is_of(self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && self.digest == XxHash3_64::oneshot(bytes)
    }
}

/// A recording in progress, in a file.
///
/// All calls must pass the same profile, which only grows, except that all stacks and samples are removed after [`Journal::part`], and lives
/// and mappings may be removed before [`Journal::forget`]. Registers are only written at the end.
#[derive(Debug)]
pub struct Journal<F> {
    file: F,
    end: u64,
    done: Rows,
    /// Digest of each life as last written, by id.
    lives: Vec<(LifeId, u32)>,
    /// Positions of all segments with mappings.
    segments: Vec<Place>,
    /// Positions of the parts, in order.
    parts: Vec<PartPlace>,
}

/// The position of a segment's archive.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    size: u64,
}

/// A finished part.
#[derive(Clone, Debug)]
struct PartPlace {
    place: Place,
    stacks: usize,
    samples: usize,
    /// Range of the lives removed from the profile after it. The part has them in their final form.
    gone: Range<usize>,
}

impl<F: Read + Write + Seek> Journal<F> {
    /// Starts a journal in an empty file.
    pub fn begin(mut file: F) -> Result<Self, WriteError> {
        let entry = "the journal";
        file.write_all(&MAGIC).map_err(|error| WriteError::Output { entry, error })?;
        Ok(Self {
            file,
            end: MAGIC.len() as u64,
            done: Rows::default(),
            lives: Vec::new(),
            segments: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Appends new rows. On failure nothing is appended, and the call may be repeated.
    pub fn grow(&mut self, profile: &Profile, meta: &Meta) -> Result<(), WriteError> {
        self.append(Kind::Growth, profile, meta)
    }

    /// Appends new rows, and all stacks and samples, which must be removed from the profile next. On failure nothing is appended, and
    /// they must stay.
    pub fn part(&mut self, profile: &Profile, meta: &Meta) -> Result<(), WriteError> {
        let before = (self.done.stacks, self.done.samples);
        (self.done.stacks, self.done.samples) = (0, 0);
        let at = self.end;
        if let Err(error) = self.append(Kind::Part, profile, meta) {
            (self.done.stacks, self.done.samples) = before;
            return Err(error);
        }
        let size = self.end - at - HEADER as u64;
        let (stacks, samples) = (profile.stacks.len(), profile.samples.len());
        self.parts.push(PartPlace {
            place: Place { at: at + HEADER as u64, size },
            stacks,
            samples,
            gone: 0..0,
        });
        (self.done.stacks, self.done.samples) = (0, 0);
        Ok(())
    }

    /// Must be called if lives and mappings were removed from the profile since [`Journal::part`], before anything is added.
    pub fn forget(&mut self, profile: &Profile) {
        self.done.mappings = profile.mappings.len();
        let is_gone = |&&(id, _): &&(LifeId, u32)| profile.lives.get(id).is_none();
        let mut gone = self.lives.iter().filter(is_gone).map(|&(id, _)| id.index());
        if let (Some(first), Some(part)) = (gone.next(), self.parts.last_mut()) {
            part.gone = first..gone.next_back().unwrap_or(first) + 1;
        }
        self.lives.retain(|&(id, _)| profile.lives.get(id).is_some());
        self.lives.shrink_to_fit();
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of samples in the parts.
    pub fn samples(&self) -> usize {
        self.parts.iter().map(|part| part.samples).sum()
    }

    fn append(&mut self, kind: Kind, profile: &Profile, meta: &Meta) -> Result<(), WriteError> {
        let digests: Vec<(LifeId, u32)> = profile.lives.iter().map(|(id, life)| (id, digest(life))).collect();
        // Any of them may be removed after a part, which then holds their final form.
        let lives = match kind {
            Kind::Growth => changed(&self.lives, &digests),
            Kind::Part => digests.iter().map(|&(id, _)| id).collect(),
        };
        let has_mappings = profile.mappings.len() > self.done.mappings;
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        write::add_meta(&mut archive, meta, VERSION)?;
        for (entry, build) in TABLES {
            let table =
                if entry == LIVES { lives::part(profile, &lives) } else { build(profile, &self.done) };
            write::add_table(&mut archive, entry, table)?;
        }
        let bytes = write::finish(archive)?.into_inner();
        let entry = "the journal";
        let output = |error| WriteError::Output { entry, error };
        self.file.seek(SeekFrom::Start(self.end)).map_err(output)?;
        self.file.write_all(&Segment::new(kind, &bytes).header()).map_err(output)?;
        self.file.write_all(&bytes).and_then(|()| self.file.flush()).map_err(output)?;
        if has_mappings {
            self.segments.push(Place { at: self.end + HEADER as u64, size: bytes.len() as u64 });
        }
        self.end += (HEADER + bytes.len()) as u64;
        (self.done, self.lives) = (Rows::of(profile), digests);
        Ok(())
    }

    /// Writes the whole recording: the parts, and the rest from the profile. One part is in memory at a time.
    pub fn finish<W: Write + Seek + Send>(&mut self, profile: &Profile, out: W) -> Result<(), WriteError> {
        if self.parts.is_empty() {
            return write::write(profile, out);
        }
        let mut archive = ZipWriter::new(out);
        write::add_meta(&mut archive, &profile.meta, IN_PARTS)?;
        for (entry, build) in TABLES {
            match entry {
                STACKS => self.stacks(profile, &mut archive)?,
                SAMPLES => self.samples_of(profile, &mut archive)?,
                LIVES => self.lives_of(profile, &mut archive)?,
                MAPPINGS => self.mappings_of(profile, &mut archive)?,
                _ => match write::in_groups(entry, profile) {
                    Some((rows, build)) => groups(&mut archive, entry, rows, |rows| build(profile, rows))?,
                    None => write::add_table(&mut archive, entry, build(profile, &Rows::default()))?,
                },
            }
        }
        registers::add(profile, &mut archive)?;
        write::finish(archive).map(drop)
    }

    fn stacks<W: Write + Seek + Send>(
        &mut self,
        profile: &Profile,
        archive: &mut ZipWriter<W>,
    ) -> Result<(), WriteError> {
        let entry = STACKS;
        let mut file = begin(archive, entry, stack_table([].into_iter()))?;
        let mut before = 0;
        for place in self.parts.clone() {
            let (callers, frames) = part_stacks(self.read(place.place)?).map_err(damaged(entry))?;
            let rows = callers.into_iter().zip(frames);
            let rows =
                rows.map(|(caller, frame)| (caller.map(|caller| caller.saturating_add(before)), frame));
            file.add(&stack_table(rows.collect::<Vec<_>>().into_iter())).map_err(encoding(entry))?;
            before = before.saturating_add(number(place.stacks));
        }
        let rows = stack_rows(profile, 0);
        let rows = rows.map(|(caller, frame)| (caller.map(|caller| caller.saturating_add(before)), frame));
        file.add(&stack_table(rows)).map_err(encoding(entry))?;
        file.finish().map(drop).map_err(encoding(entry))
    }

    fn samples_of<W: Write + Seek + Send>(
        &mut self,
        profile: &Profile,
        archive: &mut ZipWriter<W>,
    ) -> Result<(), WriteError> {
        let entry = SAMPLES;
        let mut file = begin(archive, entry, sample_table([].into_iter()))?;
        let mut before = 0;
        let later = |row: SampleRow, before: u32| SampleRow {
            stack: row.stack.map(|stack| stack.saturating_add(before)),
            ..row
        };
        for place in self.parts.clone() {
            let mut rows = part_samples(self.read(place.place)?).map_err(damaged(entry))?;
            rows.sort_by_key(|row| row.time_ns);
            let rows = rows.into_iter().map(|row| later(row, before));
            file.add(&sample_table(rows)).map_err(encoding(entry))?;
            before = before.saturating_add(number(place.stacks));
        }
        let rows = sample_rows(profile, 0).map(|row| later(row, before));
        file.add(&sample_table(rows)).map_err(encoding(entry))?;
        file.finish().map(drop).map_err(encoding(entry))
    }

    /// Writes all lives, including those removed from the profile. One group of them is in memory at a time.
    fn lives_of<W: Write + Seek + Send>(
        &mut self,
        profile: &Profile,
        archive: &mut ZipWriter<W>,
    ) -> Result<(), WriteError> {
        let entry = LIVES;
        let mut file = begin(archive, entry, lives::of_rows(&[]))?;
        let count = profile.lives.len();
        for first in (0..count).step_by(GROUP) {
            let group = self.lives_in(profile, first..count.min(first + GROUP))?;
            file.add(&lives::of_rows(&group)).map_err(encoding(entry))?;
        }
        file.finish().map(drop).map_err(encoding(entry))
    }

    /// Returns the lives with these numbers.
    fn lives_in(&mut self, profile: &Profile, wanted: Range<usize>) -> Result<Vec<Life>, WriteError> {
        let mut lives: Vec<Option<Life>> = vec![None; wanted.len()];
        let place = |id: LifeId| id.index().checked_sub(wanted.start);
        for part in self.parts.clone() {
            if part.gone.start >= wanted.end || part.gone.end <= wanted.start {
                continue;
            }
            for (id, life) in part_lives(self.read(part.place)?).map_err(damaged(LIVES))? {
                // If it is in several parts, it was removed after the last.
                if let Some(known) = place(id).and_then(|place| lives.get_mut(place)) {
                    *known = Some(life);
                }
            }
        }
        for (id, life) in profile.lives.iter() {
            if let Some(known) = place(id).and_then(|place| lives.get_mut(place)) {
                *known = Some(life.clone());
            }
        }
        let missing = || damaged(LIVES)(super::ReadError::NothingWhole { size: self.end });
        lives.into_iter().collect::<Option<_>>().ok_or_else(missing)
    }

    /// Writes all mappings in groups, too.
    fn mappings_of<W: Write + Seek + Send>(
        &mut self,
        profile: &Profile,
        archive: &mut ZipWriter<W>,
    ) -> Result<(), WriteError> {
        let entry = MAPPINGS;
        let mut file = begin(archive, entry, mapping_table(&[]))?;
        let mut group = Vec::new();
        for place in self.segments.clone() {
            group.extend(part_mappings(self.read(place)?).map_err(damaged(entry))?);
            if group.len() >= GROUP {
                file.add(&mapping_table(&group)).map_err(encoding(entry))?;
                group.clear();
            }
        }
        // All but the last were written before.
        group.extend_from_slice(profile.mappings.get(self.done.mappings..).unwrap_or_default());
        file.add(&mapping_table(&group)).map_err(encoding(entry))?;
        file.finish().map(drop).map_err(encoding(entry))
    }

    fn read(&mut self, part: Place) -> Result<Vec<u8>, WriteError> {
        let entry = "the journal";
        let input = |error| WriteError::Output { entry, error };
        self.file.seek(SeekFrom::Start(part.at)).map_err(input)?;
        let mut bytes = Vec::new();
        (&mut self.file).take(part.size).read_to_end(&mut bytes).map_err(input)?;
        Ok(bytes)
    }
}

/// Adds a table with one group of rows in memory at a time.
fn groups<W: Write + Seek + Send>(
    archive: &mut ZipWriter<W>,
    entry: &'static str,
    rows: usize,
    build: impl Fn(Range<usize>) -> TableWriter,
) -> Result<(), WriteError> {
    let mut file = begin(archive, entry, build(0..0))?;
    for first in (0..rows).step_by(GROUP) {
        file.add(&build(first..rows.min(first + GROUP))).map_err(encoding(entry))?;
    }
    file.finish().map(drop).map_err(encoding(entry))
}

/// Begins an entry for a table of several row groups.
fn begin<'a, W: Write + Seek + Send>(
    archive: &'a mut ZipWriter<W>,
    entry: &'static str,
    like: TableWriter,
) -> Result<TableFile<&'a mut ZipWriter<W>>, WriteError> {
    write::begin_entry(archive, entry, true)?;
    TableFile::begin(&like, archive).map_err(encoding(entry))
}

fn encoding(entry: &'static str) -> impl Fn(ParquetError) -> WriteError {
    move |error| match error {
        ParquetError::External(error) if error.is::<std::io::Error>() => {
            let error = error.downcast().map_or_else(|_| std::io::ErrorKind::Other.into(), |error| *error);
            WriteError::Output { entry, error }
        }
        error => WriteError::Encode { entry, message: error.to_string() },
    }
}

fn damaged(entry: &'static str) -> impl Fn(super::ReadError) -> WriteError {
    move |error| WriteError::Encode { entry, message: format!("what was kept of it can't be read: {error}") }
}

/// Returns the lives that are new, or changed since they were written. Both lists are sorted by id.
fn changed(written: &[(LifeId, u32)], now: &[(LifeId, u32)]) -> Vec<LifeId> {
    let mut written = written.iter().peekable();
    let mut is_new = |one: &&(LifeId, u32)| {
        while written.next_if(|before| before.0 < one.0).is_some() {}
        written.peek() != Some(one)
    };
    now.iter().filter(|one| is_new(one)).map(|&(id, _)| id).collect()
}

/// Converts a count, saturating at the largest id.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn digest(life: &Life) -> u32 {
    let mut hasher = DefaultHasher::new();
    life.hash(&mut hasher);
    // Half of the hash: if a change is missed once in four billion, an unfinished recording lacks an end time.
    hasher.finish() as u32
}
