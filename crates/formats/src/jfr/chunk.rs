//! A chunk: its header, its types, and the positions of its constants and of relevant events. Invariant: events do not
//! overlap, so no byte is scanned twice; the file's own list of constants is not needed, because constants are events too.

use std::collections::HashMap;

use super::bytes::Bytes;
use super::event::JfrEvent;
use super::types::Types;
use super::value::{Value, skip};
use crate::foreign::ForeignError;

/// Magic number of each chunk.
pub(super) const MAGIC: &[u8] = b"FLR\0";

/// Size of a chunk's header in bytes.
const HEAD: usize = 68;

/// Ids of the events that describe types and constants.
const METADATA: i64 = 0;
const CONSTANTS: i64 = 1;

/// Types whose constants are used.
const USED: [&str; 8] = [
    "jdk.types.StackTrace",
    "jdk.types.Method",
    "jdk.types.Symbol",
    "jdk.types.FrameType",
    "jdk.types.ThreadState",
    "java.lang.Class",
    "java.lang.Thread",
    "java.lang.String",
];

/// A chunk with its tables.
pub(super) struct Chunk<'b> {
    bytes: Bytes<'b>,
    pub clock: Clock,
    pub types: Types,
    constants: HashMap<(i64, i64), usize>,
    /// Positions of the samples, with their kinds.
    pub samples: Vec<(JfrEvent, Spot)>,
    /// Positions of the settings.
    pub settings: Vec<Spot>,
    /// Positions of descriptions of the virtual machine.
    pub machine: Vec<Spot>,
}

/// Position of an event's values.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub class: i64,
    start: usize,
    end: usize,
}

/// Converts the chunk's ticks to time.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    /// Start of the chunk, in nanoseconds since 1970.
    pub start_unix_ns: i64,
    pub duration_ns: i64,
    start: i64,
    per_second: i64,
}

impl Clock {
    /// Converts a number of ticks to nanoseconds.
    pub fn nanoseconds(&self, ticks: i64) -> i64 {
        let nanoseconds = i128::from(ticks) * 1_000_000_000 / i128::from(self.per_second.max(1));
        i64::try_from(nanoseconds).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }

    /// Converts ticks to nanoseconds since 1970.
    pub fn unix(&self, ticks: i64) -> i64 {
        self.start_unix_ns.saturating_add(self.nanoseconds(ticks.saturating_sub(self.start)))
    }
}

/// Returns the length of the chunk at an offset of the file.
pub(super) fn length(file: &[u8], offset: usize) -> Result<usize, ForeignError> {
    let mut head = Bytes::new(&file[offset..], offset);
    if head.take(MAGIC.len())? != MAGIC {
        return Err(head.wrong("there is no chunk"));
    }
    let major = head.integer(2)?;
    if !(1..=2).contains(&major) {
        return Err(ForeignError::Newer { found: u64::try_from(major).unwrap_or(0), known: 2 });
    }
    head.integer(2)?;
    let size = head.integer(8)?;
    if size == 0 {
        return Err(head.wrong("the chunk is not finished: end the recording, or use jcmd PID JFR.dump"));
    }
    let left = file.len() - offset;
    let fits = usize::try_from(size).ok().filter(|size| (HEAD..=left).contains(size));
    fits.ok_or_else(|| {
        head.wrong(format!("a chunk of {size} bytes, with {left} bytes left: the file is cut off or damaged"))
    })
}

impl<'b> Chunk<'b> {
    /// Reads the tables of the chunk `bytes`; `offset` is its position in the file.
    pub fn read(bytes: &'b [u8], offset: usize) -> Result<Self, ForeignError> {
        let mut head = Bytes::new(bytes, offset);
        head.take(MAGIC.len() + 4 + 8)?;
        let (_, metadata) = (head.integer(8)?, head.integer(8)?);
        let clock = Clock {
            start_unix_ns: head.integer(8)?,
            duration_ns: head.integer(8)?,
            start: head.integer(8)?,
            per_second: head.integer(8)?,
        };
        let packed = head.integer(4)? & 1 != 0;
        let bytes = Bytes::new(bytes, offset).packed(packed);
        let metadata = usize::try_from(metadata).map_err(|_| head.wrong("types before the chunk"))?;
        let mut there = bytes.part(metadata, usize::MAX)?;
        there.integer(4)?;
        if there.integer(8)? != METADATA {
            return Err(there.wrong("types are described elsewhere"));
        }
        // Time, duration, id.
        for _ in 0..3 {
            there.integer(8)?;
        }
        let mut chunk = Chunk {
            bytes,
            clock,
            types: Types::read(&mut there)?,
            constants: HashMap::new(),
            samples: Vec::new(),
            settings: Vec::new(),
            machine: Vec::new(),
        };
        chunk.scan()?;
        Ok(chunk)
    }

    /// Scans all events.
    fn scan(&mut self) -> Result<(), ForeignError> {
        let mut at = HEAD;
        while at < HEAD.max(self.bytes.at() + self.bytes.left()) {
            let mut event = self.bytes.part(at, usize::MAX)?;
            let size = event.integer(4)?;
            let head = event.at() - at;
            let fits = usize::try_from(size).ok().filter(|&size| size > head && size - head <= event.left());
            let size = fits.ok_or_else(|| event.wrong(format!("an event of {size} bytes")))?;
            let end = at + size;
            event = self.bytes.part(event.at(), end)?;
            let class = event.integer(8)?;
            let spot = Spot { class, start: event.at(), end };
            match class {
                METADATA => {}
                CONSTANTS => self.add_constants(&mut event)?,
                _ => match self.types.get(class).map(|one| &*one.name) {
                    Some("jdk.ActiveSetting") => self.settings.push(spot),
                    Some("jdk.JVMInformation") => self.machine.push(spot),
                    name => {
                        let kind = name.and_then(JfrEvent::of);
                        self.samples.extend(kind.map(|kind| (kind, spot)));
                    }
                },
            }
            at = end;
        }
        Ok(())
    }

    fn add_constants(&mut self, bytes: &mut Bytes<'b>) -> Result<(), ForeignError> {
        // Time, duration, position of the previous constants.
        for _ in 0..3 {
            bytes.integer(8)?;
        }
        bytes.byte()?;
        for _ in 0..bytes.count("tables of constants")? {
            let class = bytes.integer(8)?;
            let is_used = self.types.get(class).is_some_and(|one| USED.contains(&&*one.name));
            for _ in 0..bytes.count("constants")? {
                let number = bytes.integer(8)?;
                if is_used {
                    self.constants.insert((class, number), bytes.at());
                }
                skip(&self.types, class, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads the values of an event.
    pub fn event(&self, spot: Spot) -> Result<Value<'b>, ForeignError> {
        Value::read(&self.types, spot.class, &mut self.bytes.part(spot.start, spot.end)?)
    }

    /// Creates an error at an event.
    pub fn wrong(&self, spot: Spot, message: impl Into<String>) -> ForeignError {
        match self.bytes.part(spot.start, spot.end) {
            Ok(there) => there.wrong(message),
            Err(error) => error,
        }
    }

    /// Reads a constant's value; `None` if there is none, as for null.
    pub fn constant(&self, class: i64, number: i64) -> Result<Option<Value<'b>>, ForeignError> {
        let Some(&at) = self.constants.get(&(class, number)) else { return Ok(None) };
        Value::read(&self.types, class, &mut self.bytes.part(at, usize::MAX)?).map(Some)
    }

    /// Returns a field's value, resolving a constant. A constant that refers to a constant is followed once: chains may be endless.
    pub fn field(&self, object: &Value<'b>, name: &str) -> Result<Option<Value<'b>>, ForeignError> {
        let mut value = object.field(&self.types, name).cloned();
        for _ in 0..2 {
            let Some(Value::Constant(class, number)) = value else { break };
            value = self.constant(class, number)?;
        }
        Ok(value)
    }

    /// Returns a numeric field; 0 if it is missing.
    pub fn number(&self, object: &Value<'b>, name: &str) -> i64 {
        match object.field(&self.types, name) {
            Some(&(Value::Number(number) | Value::Constant(_, number))) => number,
            _ => 0,
        }
    }

    /// Returns a text field, or that of an object that only contains text; empty if it is missing.
    pub fn text(&self, object: &Value<'b>, name: &str) -> Result<String, ForeignError> {
        let mut value = self.field(object, name)?;
        for _ in 0..2 {
            value = match value {
                Some(Value::Object(_, inner)) => inner.into_iter().next(),
                Some(Value::Constant(class, number)) => self.constant(class, number)?,
                Some(Value::Text(text)) => return Ok(text.into_owned()),
                _ => return Ok(String::new()),
            };
        }
        Ok(if let Some(Value::Text(text)) = value { text.into_owned() } else { String::new() })
    }
}
