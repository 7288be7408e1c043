//! Reads a processed profile: samples of all threads with their times.

use std::borrow::Cow;
use std::collections::HashMap;

use plumb_profile::{AddressSpace, BuildId, FrameId, FrameKind, Profile, Sample, StackId, ThreadId};

use super::columns::{File, NEWEST, Samples, Thread};
use crate::foreign::{Assembly, ForeignError, Place, TOO_LARGE, whole};

/// Largest number of nested inlined calls in one frame; further ones become frames of their own.
const MOST_INLINED: usize = 64;

/// Reads the file.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let file: File<'_> = serde_json::from_slice(bytes)?;
    let found = file.meta.preprocessed_profile_version;
    if found > NEWEST {
        return Err(ForeignError::Newer { found, known: NEWEST });
    }
    let mut reading = Reading { file: &file, assembly: Assembly::new(), inexact: 0 };
    let none = Thread::default();
    let shared = file.shared.as_ref().unwrap_or(&none);
    let strings = &shared.string_array[..];
    // Versions differ in what is shared: frame and function tables are shared if stack tables are.
    let is_shared = !shared.stack_table.frame.is_empty();
    let mut known = if is_shared { reading.stacks(shared, strings)? } else { Vec::new() };
    for (row, thread) in file.threads.iter().enumerate() {
        if !is_shared {
            known = reading.stacks(thread, strings)?;
        }
        reading.thread(row, thread, &known)?;
    }
    Ok(reading.finish())
}

struct Reading<'f> {
    file: &'f File<'f>,
    assembly: Assembly,
    /// Number of weights that are not whole numbers of their unit.
    inexact: u64,
}

/// A row of the stack table.
#[derive(Clone)]
struct Row {
    stack: StackId,
    /// The caller of the function that all frames are inlined into.
    caller: Option<StackId>,
    /// Frame rows, from the function to the innermost call inlined into it.
    frames: Vec<usize>,
}

impl<'f> Reading<'f> {
    /// Returns the profile's stack for each row of the table.
    fn stacks(
        &mut self,
        tables: &Thread<'f>,
        strings: &[Cow<'f, str>],
    ) -> Result<Vec<StackId>, ForeignError> {
        let stacks = &tables.stack_table;
        let mut rows: Vec<Row> = Vec::with_capacity(stacks.frame.len());
        let mut frames: HashMap<Vec<usize>, FrameId> = HashMap::new();
        for (row, &frame) in stacks.frame.iter().enumerate() {
            let wrong = |message: String| ForeignError::Row { table: "stackTable", row, message };
            let above = match stacks.caller(row) {
                Some(caller) => {
                    Some(rows.get(caller).ok_or_else(|| wrong("its caller doesn't come before it".into()))?)
                }
                None => None,
            };
            let is_inlined = tables.frame_table.is_inlined(frame);
            let (caller, parts) = match above.filter(|above| is_inlined && above.frames.len() < MOST_INLINED)
            {
                Some(above) => (above.caller, [&above.frames[..], &[frame]].concat()),
                None => (above.map(|above| above.stack), vec![frame]),
            };
            let id = match frames.get(&parts) {
                Some(&known) => known,
                None => {
                    let marker = if above.is_none() { self.marker(tables, strings, frame) } else { None };
                    let id = match marker {
                        Some(marker) => marker,
                        None => self.frame(tables, strings, &parts).ok_or_else(|| {
                            wrong(format!("frame {frame}, or its function or name, is not there"))
                        })?,
                    };
                    frames.insert(parts.clone(), id);
                    id
                }
            };
            let stack = self.assembly.profile.stacks.add(caller, id);
            rows.push(Row { stack, caller, frames: parts });
        }
        Ok(rows.into_iter().map(|row| row.stack).collect())
    }

    fn marker(&mut self, tables: &Thread<'f>, strings: &[Cow<'f, str>], frame: usize) -> Option<FrameId> {
        let name = tables.name(strings, tables.frame_table.function(frame)?)?;
        self.assembly.marker(name)
    }

    /// Returns the frame of a function and the calls inlined into it.
    fn frame(&mut self, tables: &Thread<'f>, strings: &[Cow<'f, str>], parts: &[usize]) -> Option<FrameId> {
        let mut places = Vec::with_capacity(parts.len());
        for (depth, &part) in parts.iter().enumerate() {
            let function = tables.frame_table.function(part)?;
            places.push(Place {
                name: tables.name(strings, function)?,
                file: tables.file(strings, function).unwrap_or_default(),
                line: tables.frame_table.line(part),
                inlined: depth > 0,
                ..Place::default()
            });
        }
        places.reverse();
        let outer = *parts.first()?;
        let library = tables.library(outer, tables.frame_table.function(outer)?);
        let library = library.and_then(|library| self.file.libs.get(library));
        let Some((library, address)) = library.zip(tables.frame_table.address(outer)) else {
            let kind = self.kind(tables, outer);
            return Some(self.assembly.frame(kind, library.map_or("", |library| library.called()), &places));
        };
        let path = library.called();
        let build_id = library.code_id.as_deref().and_then(BuildId::from_hex);
        let dso = self.assembly.dso(path, build_id, AddressSpace::Svma, address);
        // Functions without a name are named by their address.
        places.retain(|place| place.name != format!("{address:#x}"));
        Some(self.assembly.frame_at(dso, address, &places))
    }

    fn kind(&self, tables: &Thread<'f>, frame: usize) -> FrameKind {
        let categories = self.file.meta.categories.as_deref().unwrap_or_default();
        let category = tables.frame_table.category(frame).and_then(|category| categories.get(category));
        if category.is_some_and(|category| category.name == "Kernel") {
            FrameKind::Kernel
        } else {
            FrameKind::User
        }
    }

    fn thread(&mut self, row: usize, thread: &Thread<'f>, stacks: &[StackId]) -> Result<(), ForeignError> {
        let wrong = |message: String| ForeignError::Row { table: "threads", row, message };
        let id = self.assembly.thread(number(&thread.pid), number(&thread.tid), &thread.name, "");
        let samples = &thread.samples;
        let times = times(samples);
        for (at, &stack) in samples.stack.iter().enumerate() {
            let stack = match stack.map(|stack| (stack, stacks.get(stack))) {
                None => None,
                Some((_, Some(&known))) => Some(known),
                Some((stack, None)) => {
                    return Err(wrong(format!("sample {at} has stack {stack}, which is not there")));
                }
            };
            let time = times.get(at).copied().ok_or_else(|| wrong(format!("sample {at} has no time")))?;
            let weight = match &samples.weight {
                None => 1.0,
                Some(weights) => weights.get(at).copied().flatten().unwrap_or(1.0),
            };
            // Nothing ran: the Firefox Profiler does not show such samples either.
            if stack.is_some() && weight != 0.0 {
                let why = |why| wrong(format!("sample {at}, whose weight is {weight}: {why}"));
                self.sample(samples, id, stack, time, weight).map_err(why)?;
            }
        }
        Ok(())
    }

    fn sample(
        &mut self,
        samples: &Samples,
        thread: ThreadId,
        stack: Option<StackId>,
        time: f64,
        weight: f64,
    ) -> Result<(), String> {
        let (name, unit, factor) = match samples.weight_type.as_deref() {
            Some("tracing-ms") => ("time", "ns", 1e6),
            Some("bytes") => ("bytes", "bytes", 1.0),
            _ => ("samples", "", 1.0),
        };
        let event = self.assembly.event(name, unit);
        let (weight, has_fraction) = whole(weight * factor).map_err(|why| format!("it {why}"))?;
        self.inexact += u64::from(has_fraction);
        let weight = self.assembly.weigh(weight).ok_or(TOO_LARGE)?;
        // The conversion saturates.
        let time_ns = (time.max(0.0) * 1e6).round() as u64;
        self.assembly.profile.samples.push(Sample {
            time_ns,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight,
        });
        Ok(())
    }

    fn finish(mut self) -> Profile {
        let from = &self.file.meta;
        let first = self.assembly.profile.samples.iter().map(|sample| sample.time_ns).min().unwrap_or(0);
        let meta = &mut self.assembly.profile.meta;
        meta.start_unix_ns = ((from.start_time.max(0.0) * 1e6) as u64).saturating_add(first);
        if from.interval > 0.0 {
            meta.frequency_hz = Some((1e3 / from.interval).round() as u32).filter(|&hz| hz > 0);
        }
        meta.command.extend(from.product.clone());
        meta.kernel = from.oscpu.clone().unwrap_or_default();
        meta.warnings.push(
            "imported from the Firefox Profiler, which tells neither processors of samples nor which event they are of"
                .into(),
        );
        if self.inexact > 0 {
            meta.warnings.push(format!("{} weights have fractions: they are rounded", self.inexact));
        }
        let recorder = from.imported_from.clone().unwrap_or_else(|| "Firefox Profiler".into());
        self.assembly.finish(&recorder)
    }
}

/// Returns the time of each sample in milliseconds.
fn times(samples: &Samples) -> Cow<'_, [f64]> {
    match (&samples.time, &samples.time_deltas) {
        (Some(times), _) => times.into(),
        (None, Some(deltas)) => {
            let mut now = 0.0;
            let times = deltas.iter().map(|delta| {
                now += delta;
                now
            });
            times.collect::<Vec<f64>>().into()
        }
        (None, None) => (&[][..]).into(),
    }
}

/// Parses a process or thread id: `12`, `"12"`, or `"12.1"` for the second with that id.
fn number(value: &serde_json::Value) -> Option<u32> {
    match value {
        serde_json::Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        serde_json::Value::String(text) => text.split('.').next()?.parse().ok(),
        _ => None,
    }
}
