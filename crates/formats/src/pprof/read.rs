//! Reads a pprof profile. Each type of value except the number of samples becomes an event.

use std::collections::HashMap;

use plumb_profile::{AddressSpace, BuildId, EventId, FrameId, Profile, StackId, ThreadId};
use prost::Message;

use super::message;
use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE};

/// Whether the bytes may be such a message: its first field is a known one.
pub(crate) fn is(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let field = varint(&mut rest).and_then(|key| field_end(key, rest).map(|_| key >> 3));
    field.is_some_and(|field| (1..=15).contains(&field))
}

/// Reads the decompressed message.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let message = decode(bytes, Most::default())?;
    let mut reading = Reading::new(&message)?;
    reading.samples()?;
    Ok(reading.finish())
}

/// Limits of a message's rows: a row of two bytes takes up to a hundred in memory.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Stacks with values.
    pub samples: usize,
    /// Rows of any other table.
    pub rows: usize,
    /// Types of values.
    pub types: usize,
    /// Encoded bytes of a location.
    pub location: usize,
}

impl Default for Most {
    fn default() -> Self {
        Self { samples: usize::MAX, rows: usize::MAX, types: usize::MAX, location: usize::MAX }
    }
}

/// Decodes the decompressed message field by field, so that an error has a position.
pub fn decode(bytes: &[u8], most: Most) -> Result<message::Profile, ForeignError> {
    let mut message = message::Profile::default();
    for field in Fields::of(bytes) {
        merge(&mut message, &field?, most)?;
    }
    Ok(message)
}

/// As [`decode`], without the samples, which [`samples`] decodes one by one: all of them together take ten times as much memory as the message.
pub fn decode_tables(bytes: &[u8], most: Most) -> Result<message::Profile, ForeignError> {
    let mut message = message::Profile::default();
    for field in Fields::of(bytes) {
        let field = field?;
        // Comments are of no use to a reader of tables.
        if ![SAMPLE, COMMENT].contains(&field.number) {
            merge(&mut message, &field, most)?;
        }
    }
    Ok(message)
}

/// The samples of a decompressed message, in its order, decoded one by one. `most`: encoded bytes of one of them.
pub fn samples(
    bytes: &[u8],
    most: usize,
) -> impl Iterator<Item = Result<message::PprofSample, ForeignError>> + '_ {
    let decoded = move |field: Field<'_>| {
        let damaged = |message: String| ForeignError::Message { offset: field.offset, message };
        if field.bytes.len() > most {
            let message = format!("a sample takes {} bytes; limit {most}", field.bytes.len());
            return Err(damaged(message));
        }
        let mut one = message::Profile::default();
        one.merge(field.bytes).map_err(|error| damaged(error.to_string()))?;
        Ok(one.sample.pop().unwrap_or_default())
    };
    let is_sample = |field: &Result<Field<'_>, ForeignError>| match field {
        Ok(field) => field.number == SAMPLE,
        Err(_) => true,
    };
    Fields::of(bytes).filter(is_sample).map(move |field| decoded(field?))
}

fn merge(message: &mut message::Profile, field: &Field<'_>, most: Most) -> Result<(), ForeignError> {
    let damaged = |message: String| ForeignError::Message { offset: field.offset, message };
    if field.number == LOCATION && field.bytes.len() > most.location {
        let (bytes, most) = (field.bytes.len(), most.location);
        return Err(damaged(format!("a location with its inlined calls takes {bytes} bytes; limit {most}")));
    }
    message.merge(field.bytes).map_err(|error| damaged(error.to_string()))?;
    too_many(message, most).map_or(Ok(()), |message| Err(damaged(message)))
}

/// Numbers of fields of the message.
const SAMPLE: u64 = 2;
const LOCATION: u64 = 4;
const COMMENT: u64 = 13;

/// A field of a message, with its key.
struct Field<'b> {
    number: u64,
    offset: usize,
    bytes: &'b [u8],
}

/// The fields of a message; ends after an error.
struct Fields<'b> {
    bytes: &'b [u8],
    offset: usize,
}

impl<'b> Fields<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        Self { bytes, offset: 0 }
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<Field<'b>, ForeignError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, rest) = (self.offset, &self.bytes[self.offset..]);
        if rest.is_empty() {
            return None;
        }
        let mut value = rest;
        let end = varint(&mut value).and_then(|key| Some((key >> 3, field_end(key, value)?)));
        let Some((number, end)) = end else {
            self.offset = self.bytes.len();
            let message = "truncated field or invalid key".into();
            return Some(Err(ForeignError::Message { offset, message }));
        };
        let length = rest.len() - value.len() + end;
        self.offset += length;
        Some(Ok(Field { number, offset, bytes: &rest[..length] }))
    }
}

/// Returns an error for a table with too many rows.
fn too_many(message: &message::Profile, most: Most) -> Option<String> {
    let tables = [
        ("sample types", message.sample_type.len(), most.types),
        ("samples", message.sample.len(), most.samples),
        ("mappings", message.mapping.len(), most.rows),
        ("locations", message.location.len(), most.rows),
        ("functions", message.function.len(), most.rows),
        ("strings", message.string_table.len(), most.rows),
    ];
    let (name, _, most) = tables.into_iter().find(|&(_, rows, most)| rows > most)?;
    Some(format!("it has more than {most} {name}, which is the limit"))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the end of the field at the start of `bytes`; `None` if they do not contain all of it.
fn field_end(key: u64, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let end = match key & 7 {
        0 => {
            varint(&mut rest)?;
            bytes.len() - rest.len()
        }
        1 => 8,
        2 => {
            let length = usize::try_from(varint(&mut rest)?).ok()?;
            (bytes.len() - rest.len()).checked_add(length)?
        }
        5 => 4,
        _ => return None,
    };
    (end <= bytes.len()).then_some(end)
}

/// A type of value.
#[derive(Clone, Copy)]
struct Value {
    /// Index among the values of a sample.
    place: usize,
    event: EventId,
    /// The event of negative values, which occur in a difference of profiles.
    decrease: Option<EventId>,
    /// Factor from its unit to the event's.
    factor: u64,
}

struct Reading<'m> {
    message: &'m message::Profile,
    assembly: Assembly,
    /// Index of the value that counts samples.
    count: Option<usize>,
    values: Vec<Value>,
    locations: HashMap<u64, usize>,
    functions: HashMap<u64, usize>,
    mappings: HashMap<u64, usize>,
    frames: HashMap<u64, FrameId>,
}

/// Maps ids to rows; of several rows with one id, the first.
fn by_id(ids: impl Iterator<Item = u64>) -> HashMap<u64, usize> {
    let mut places = HashMap::new();
    ids.enumerate().for_each(|(place, id)| {
        places.entry(id).or_insert(place);
    });
    places
}

impl<'m> Reading<'m> {
    fn new(message: &'m message::Profile) -> Result<Self, ForeignError> {
        let mut reading = Reading {
            message,
            assembly: Assembly::new(),
            count: None,
            values: Vec::new(),
            locations: by_id(message.location.iter().map(|one| one.id)),
            functions: by_id(message.function.iter().map(|one| one.id)),
            mappings: by_id(message.mapping.iter().map(|one| one.id)),
            frames: HashMap::new(),
        };
        reading.types()?;
        Ok(reading)
    }

    fn text(&self, index: i64, table: &'static str, row: usize) -> Result<&'m str, ForeignError> {
        let text = usize::try_from(index).ok().and_then(|index| self.message.string_table.get(index));
        text.map(String::as_str).ok_or_else(|| ForeignError::Row {
            table,
            row,
            message: format!("there is no string {index}"),
        })
    }

    /// Returns the events: first the one that the file shows by default.
    fn types(&mut self) -> Result<(), ForeignError> {
        let message = self.message;
        let mut types = Vec::new();
        for (row, one) in message.sample_type.iter().enumerate() {
            types.push((self.text(one.kind, "sample_type", row)?, self.text(one.unit, "sample_type", row)?));
        }
        let default = self.text(message.default_sample_type, "default_sample_type", 0)?;
        let is_count = |&(kind, unit): &(&str, &str)| kind == "samples" && unit == "count";
        self.count = types.iter().position(is_count);
        let mut order: Vec<usize> =
            (0..types.len()).filter(|&place| types.len() == 1 || self.count != Some(place)).collect();
        // Without a default it is the last.
        let first = order.iter().position(|&place| types[place].0 == default).or(order.len().checked_sub(1));
        if let Some(first) = first {
            order[..=first].rotate_right(1);
        }
        for place in order {
            let (kind, unit) = types[place];
            let (unit, factor) = match unit {
                "nanoseconds" => ("ns", 1),
                "microseconds" => ("ns", 1_000),
                "milliseconds" => ("ns", 1_000_000),
                "seconds" => ("ns", 1_000_000_000),
                "count" => ("", 1),
                unit => (unit, 1),
            };
            let name = if (kind, unit) == ("cpu", "ns") { "cpu-clock" } else { kind };
            let event = self.assembly.event(name, unit);
            self.values.push(Value { place, event, decrease: None, factor });
        }
        Ok(())
    }

    fn samples(&mut self) -> Result<(), ForeignError> {
        let message = self.message;
        let mut counted = Vec::new();
        for (row, sample) in message.sample.iter().enumerate() {
            let wrong = |message: String| ForeignError::Row { table: "sample", row, message };
            if sample.value.len() != message.sample_type.len() {
                return Err(wrong(format!(
                    "it has {} values of {} types",
                    sample.value.len(),
                    message.sample_type.len()
                )));
            }
            let there = |value: &&Value| sample.value[value.place] != 0;
            let values: Vec<Value> = self.values.iter().filter(there).copied().collect();
            if values.is_empty() {
                continue;
            }
            let (stack, thread) = (self.stack(row, &sample.location_id)?, self.thread(row, &sample.label)?);
            // With several values it is unknown which one the number of samples belongs to.
            let count = self.count.filter(|_| values.len() == 1).map(|place| sample.value[place]);
            self.assembly.profile.meta.untold.samples |= count.is_none();
            let count = count.unwrap_or(1);
            for Value { place, event, factor, .. } in values {
                let event = if sample.value[place] < 0 { self.decrease(place) } else { event };
                let (value, count) = (sample.value[place].unsigned_abs(), count.unsigned_abs());
                let weight = value.checked_mul(factor).and_then(|weight| self.assembly.weigh(weight));
                let weight = weight.ok_or_else(|| wrong(TOO_LARGE.into()))?;
                counted.push(Counted { thread, event, stack, count, weight });
            }
        }
        self.assembly.counted(counted);
        Ok(())
    }

    /// Returns the event for negative values of the type at this index.
    fn decrease(&mut self, place: usize) -> EventId {
        let Some(value) = self.values.iter_mut().find(|value| value.place == place) else {
            return self.assembly.event("decrease", "");
        };
        *value.decrease.get_or_insert_with(|| {
            let event = &self.assembly.profile.events[value.event];
            let text = |id| self.assembly.profile.strings.get(id);
            let (name, unit) = (format!("{}-decrease", text(event.name)), text(event.unit).to_owned());
            self.assembly.event(&name, &unit)
        })
    }

    fn thread(&mut self, row: usize, labels: &[message::Label]) -> Result<ThreadId, ForeignError> {
        let (mut pid, mut tid, mut comm) = (None, None, "");
        for label in labels {
            let (key, text) = (self.text(label.key, "sample", row)?, self.text(label.text, "sample", row)?);
            let number =
                || u32::try_from(label.number).ok().filter(|&number| number > 0).or(text.parse().ok());
            match key {
                "pid" | "process_id" => pid = number(),
                "tid" | "thread_id" | "thread id" => tid = number(),
                "thread" | "thread_name" | "comm" => comm = text,
                _ => {}
            }
        }
        Ok(self.assembly.thread(pid, tid, comm, ""))
    }

    fn stack(&mut self, row: usize, locations: &[u64]) -> Result<Option<StackId>, ForeignError> {
        let mut frames = Vec::with_capacity(locations.len());
        for (depth, &id) in locations.iter().enumerate() {
            let frame = match self.frames.get(&id) {
                Some(&known) => known,
                None => {
                    let place = self.locations.get(&id).copied();
                    let place = place.ok_or_else(|| ForeignError::Row {
                        table: "sample",
                        row,
                        message: format!("there is no location {id}"),
                    })?;
                    let frame = self.frame(place, depth + 1 == locations.len())?;
                    self.frames.insert(id, frame);
                    frame
                }
            };
            frames.push(frame);
        }
        Ok(self.assembly.profile.add_stack(&frames))
    }

    fn frame(&mut self, row: usize, outermost: bool) -> Result<FrameId, ForeignError> {
        let location = &self.message.location[row];
        let mut places = Vec::with_capacity(location.line.len());
        for (depth, line) in location.line.iter().enumerate() {
            let function = self.functions.get(&line.function_id).copied();
            let wrong = |message| ForeignError::Row { table: "location", row, message };
            let function =
                function.ok_or_else(|| wrong(format!("there is no function {}", line.function_id)))?;
            let one = self.message.function[function];
            places.push(Place {
                name: self.text(one.name, "function", function)?,
                linkage: self.text(one.system_name, "function", function)?,
                file: self.text(one.filename, "function", function)?,
                line: u32::try_from(line.line).unwrap_or(0),
                start_line: u32::try_from(one.start_line).unwrap_or(0),
                inlined: depth + 1 < location.line.len(),
            });
        }
        let mapping = self.mappings.get(&location.mapping_id).filter(|_| location.mapping_id != 0);
        let marker = match places[..] {
            [Place { name, .. }] if outermost && mapping.is_none() => self.assembly.marker(name),
            _ => None,
        };
        if let Some(marker) = marker {
            return Ok(marker);
        }
        let (path, address, addresses, build_id) = self.address(location, mapping.copied())?;
        let dso = self.assembly.dso(path, build_id, addresses, location.address);
        // A nameless function is treated like a bare address.
        places.retain(|place| !place.name.is_empty());
        if location.address == 0 && !places.is_empty() {
            let kind = self.assembly.kind_in(dso);
            return Ok(self.assembly.frame(kind, path, &places));
        }
        Ok(self.assembly.frame_at(dso, address, &places))
    }

    /// Returns the file of a location, the address, its address space, and the file's build id. A run-time address is converted to one
    /// in the file if the mapping has the offset.
    fn address(
        &self,
        location: &message::Location,
        mapping: Option<usize>,
    ) -> Result<(&'m str, u64, AddressSpace, Option<BuildId>), ForeignError> {
        let Some(row) = mapping else { return Ok(("", location.address, AddressSpace::Avma, None)) };
        let one = &self.message.mapping[row];
        let path = self.text(one.filename, "mapping", row)?;
        let build_id = BuildId::from_hex(self.text(one.build_id, "mapping", row)?);
        Ok(match location.address.checked_sub(one.memory_start) {
            Some(inside) if one.memory_start > 0 && !path.starts_with('[') => {
                (path, inside.saturating_add(one.file_offset), AddressSpace::FileOffset, build_id)
            }
            _ => (path, location.address, AddressSpace::Svma, build_id),
        })
    }

    fn finish(mut self) -> Profile {
        let message = self.message;
        let text = |index: i64| usize::try_from(index).ok().and_then(|at| message.string_table.get(at));
        let recorder = message.comment.first().and_then(|&comment| text(comment));
        let recorder = recorder.filter(|text| text.starts_with("plumb ") || text.starts_with("perf "));
        let period_unit = message.period_type.and_then(|one| text(one.unit));
        let meta = &mut self.assembly.profile.meta;
        meta.start_unix_ns = u64::try_from(message.time_nanos).unwrap_or(0);
        meta.duration_ns = u64::try_from(message.duration_nanos).unwrap_or(0);
        if period_unit.is_some_and(|unit| unit == "nanoseconds") && message.period > 0 {
            let period = message.period.unsigned_abs();
            meta.frequency_hz = u32::try_from((1_000_000_000 + period / 2) / period).ok();
        }
        let counts = if self.count.is_some() { "" } else { ", nor of how many samples values are the sum" };
        meta.warnings.push(format!(
            "imported from pprof, which tells neither when nor on which processor samples were taken{counts}"
        ));
        if self.values.iter().any(|value| value.decrease.is_some()) {
            meta.warnings.push(
                "a difference of profiles: its values below zero are events of their own, whose names end in `-decrease`".into(),
            );
        }
        self.assembly.finish(recorder.map_or("pprof", String::as_str))
    }
}
