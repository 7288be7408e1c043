//! Reads trace events: time slices of each thread as stacks, and the V8 CPU profiles that a trace may contain.
//!
//! A slice has a begin and an end event (`B`, `E`), or is one event (`X`). Clock differences make slices overlap: the part outside
//! the slice in which one began is left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use plumb_profile::{EventId, FrameId, FrameKind, Profile, StackId, ThreadId};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::slices::{Slice, Slices};
use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE, whole};
use crate::v8;

/// Largest number of events read from a trace: each takes some hundred bytes.
const MOST_EVENTS: usize = 1 << 24;

#[derive(Deserialize)]
struct TraceEvent<'a> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    /// Microseconds.
    #[serde(default)]
    ts: Option<f64>,
    #[serde(default)]
    dur: Option<f64>,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    tid: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    args: Value,
}

/// A thread's ids as its events have them: numbers, or texts.
type ThreadKey = (String, String);

/// Reads the trace: an object with `traceEvents`, or only the list, which need not be terminated.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let mut reading = Reading::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = Trace(&mut reading).deserialize(&mut json).and_then(|()| json.end());
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let is_cut = match read {
        Ok(()) => false,
        Err(error) if error.is_eof() && is_list && reading.events > 0 => true,
        Err(error) => return Err(error.into()),
    };
    reading.finish(is_cut)
}

/// Processes events one by one, so that they are never all in memory.
struct Trace<'r>(&'r mut Reading);

impl<'de> DeserializeSeed<'de> for Trace<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Trace<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of trace events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<TraceEvent<'_>>()? {
            self.0.event(&event).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key == "traceEvents" {
                map.next_value_seed(Trace(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The data of a thread.
#[derive(Default)]
struct Thread {
    name: String,
    slices: Slices,
}

#[derive(Default)]
struct Reading {
    events: usize,
    threads: BTreeMap<ThreadKey, Thread>,
    /// Process names, by the events' ids.
    processes: BTreeMap<String, String>,
    names: Names,
    /// V8 profiles by process and id, with their threads.
    profiles: BTreeMap<(String, String), V8Profile>,
    /// Number of events of kinds that are not read.
    others: u64,
}

/// Distinct names of slices.
#[derive(Default)]
struct Names {
    list: Vec<Name>,
    known: std::collections::HashMap<Name, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    name: String,
    category: String,
    /// The file, as written by plumb's own export.
    file: String,
    source: String,
}

impl Names {
    fn add(&mut self, name: Name) -> usize {
        let next = self.list.len();
        *self.known.entry(name).or_insert_with_key(|name| {
            self.list.push(name.clone());
            next
        })
    }
}

/// A V8 profile: its thread, its start, and its nodes and samples in order of arrival.
#[derive(Default)]
struct V8Profile {
    thread: ThreadKey,
    start: f64,
    end: Option<f64>,
    chunks: Vec<Value>,
}

impl Reading {
    fn event(&mut self, event: &TraceEvent<'_>) -> Result<(), String> {
        self.events += 1;
        if self.events > MOST_EVENTS {
            return Err(format!("more than {MOST_EVENTS} trace events, which is the limit"));
        }
        let key = || (text(&event.pid), text(&event.tid));
        match &*event.ph {
            "M" => {
                let name = event.args.get("name").and_then(Value::as_str).unwrap_or_default();
                match &*event.name {
                    "thread_name" => self.threads.entry(key()).or_default().name = name.into(),
                    "process_name" => drop(self.processes.insert(text(&event.pid), name.into())),
                    _ => {}
                }
            }
            "B" | "E" | "X" => {
                let time = event.ts.ok_or_else(|| format!("event number {}: it has no `ts`", self.events))?;
                let name = if event.ph == "E" { 0 } else { self.names.add(name(event)) };
                let slices = &mut self.threads.entry(key()).or_default().slices;
                match &*event.ph {
                    "B" => slices.begin(time, name),
                    "E" => slices.end(time),
                    _ => slices.complete(time, event.dur.unwrap_or(0.0), name),
                }
            }
            "P" if event.name == "Profile" || event.name == "ProfileChunk" => self.profile(event, key()),
            _ => self.others += 1,
        }
        Ok(())
    }

    fn profile(&mut self, event: &TraceEvent<'_>, thread: ThreadKey) {
        let profile = self.profiles.entry((thread.0.clone(), text(&event.id))).or_default();
        let Some(data) = event.args.get("data") else { return };
        let number = |name: &str| data.get(name).and_then(Value::as_f64);
        if event.name == "Profile" {
            profile.thread = thread;
            profile.start = number("startTime").or(event.ts).unwrap_or(0.0);
        }
        profile.end = number("endTime").or(profile.end);
        profile.chunks.push(data.clone());
    }

    fn finish(mut self, is_cut: bool) -> Result<Profile, ForeignError> {
        let mut assembly = Assembly::new();
        let mut idle_ns = 0;
        let ids: BTreeMap<ThreadKey, ThreadId> = self
            .threads
            .keys()
            .chain(self.profiles.values().map(|profile| &profile.thread))
            .map(|key| (key.clone(), self.thread(&mut assembly, key)))
            .collect();
        let profiles = std::mem::take(&mut self.profiles);
        for profile in profiles.values() {
            let event = assembly.event("profile", "ns");
            if let Some(&thread) = ids.get(&profile.thread) {
                idle_ns += profile.add(&mut assembly, thread, event)?;
            }
        }
        let event = assembly.event("time", "ns");
        let frames: Vec<(FrameId, Option<FrameId>)> =
            self.names.list.iter().map(|name| frame(&mut assembly, name)).collect();
        let mut problems = 0;
        for (row, (key, thread)) in self.threads.into_iter().enumerate() {
            let (slices, wrong) = thread.slices.nested();
            problems += wrong;
            let Some(&thread) = ids.get(&key) else { continue };
            let mut stacks = Stacks { assembly: &mut assembly, frames: &frames, thread, event };
            stacks.add(&slices).map_err(|message| ForeignError::Row { table: "threads", row, message })?;
        }
        let warnings = &mut assembly.profile.meta.warnings;
        warnings.push(
            "imported from trace events, which tell neither processors nor addresses; times are wall-clock"
                .into(),
        );
        let notes = [
            (is_cut, "the trace is cut off: what it has is read".to_owned()),
            (self.others > 0, format!("{} events that are no slices are left out", self.others)),
            (problems > 0, format!("{problems} slices overlap others, or have no beginning or no end")),
            (idle_ns > 0, format!("{:.3} s in which threads were idle are left out", idle_ns as f64 / 1e9)),
        ];
        warnings.extend(notes.into_iter().filter(|note| note.0).map(|note| note.1));
        Ok(assembly.finish("trace events"))
    }

    fn thread(&self, assembly: &mut Assembly, key: &ThreadKey) -> ThreadId {
        let (pid, tid) = (key.0.parse().ok(), key.1.parse().ok());
        let named = self.threads.get(key).map(|thread| &*thread.name).filter(|name| !name.is_empty());
        // A number that is not a thread id is still a name.
        let name = named.unwrap_or(if tid.is_none() { &key.1 } else { "" });
        assembly.thread(pid, tid, name, self.processes.get(&key.0).map_or("", String::as_str))
    }
}

fn frame(assembly: &mut Assembly, name: &Name) -> (FrameId, Option<FrameId>) {
    let kind = if name.category == "kernel" { FrameKind::Kernel } else { FrameKind::User };
    let place = Place { name: &name.name, file: &name.source, ..Place::default() };
    let marker = if name.category == "cut" { assembly.marker(&name.name) } else { None };
    (assembly.frame(kind, &name.file, &[place]), marker)
}

fn name(event: &TraceEvent<'_>) -> Name {
    let text = |key: &str| event.args.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    // Other tools have any number of categories, which are ignored.
    let category = if matches!(&*event.cat, "kernel" | "cut") { &*event.cat } else { "" };
    let is_ours = matches!(&*event.cat, "user" | "kernel");
    let (file, source) = if is_ours { (text("file"), text("source")) } else { Default::default() };
    Name { name: event.name.clone().into_owned(), category: category.into(), file, source }
}

/// Returns an id, which may be a number or text, as text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl V8Profile {
    /// Adds the samples; returns the time for which the thread was idle.
    fn add(&self, assembly: &mut Assembly, thread: ThreadId, event: EventId) -> Result<u64, ForeignError> {
        let mut samples = v8::Samples::new(self.start);
        for chunk in &self.chunks {
            let profile = chunk.get("cpuProfile");
            let nodes = profile.and_then(|profile| profile.get("nodes"));
            let nodes = nodes.map(Vec::<v8::Node<'_>>::deserialize).transpose()?.unwrap_or_default();
            samples.add_nodes(assembly, &nodes)?;
            let taken = profile.and_then(|profile| profile.get("samples"));
            let deltas = chunk.get("timeDeltas").or_else(|| profile.and_then(|one| one.get("timeDeltas")));
            let taken = taken.map(Vec::<u64>::deserialize).transpose()?.unwrap_or_default();
            let deltas = deltas.map(Vec::<f64>::deserialize).transpose()?.unwrap_or_default();
            samples.add(&taken, &deltas)?;
        }
        samples.finish(assembly, thread, event, self.end)
    }
}

/// Converts a thread's slices to samples: each stack gets the time for which it was the innermost.
struct Stacks<'a> {
    assembly: &'a mut Assembly,
    /// By name: the frame, and the marker if it is one at the root.
    frames: &'a [(FrameId, Option<FrameId>)],
    thread: ThreadId,
    event: EventId,
}

impl Stacks<'_> {
    /// Adds nested slices, sorted by start.
    fn add(&mut self, slices: &[Slice]) -> Result<(), String> {
        let mut open: Vec<(StackId, f64)> = Vec::new();
        let mut now = 0.0;
        for slice in slices {
            self.close(&mut open, &mut now, slice.begin)?;
            let caller = open.last().map(|&(stack, _)| stack);
            self.spend(caller, now, slice.begin)?;
            now = slice.begin;
            let (frame, marker) = self.frames.get(slice.name).copied().ok_or("it has no name")?;
            let frame = marker.filter(|_| caller.is_none()).unwrap_or(frame);
            open.push((self.assembly.profile.stacks.add(caller, frame), slice.end));
        }
        self.close(&mut open, &mut now, f64::INFINITY)
    }

    /// Closes the slices that end before `until`.
    fn close(&mut self, open: &mut Vec<(StackId, f64)>, now: &mut f64, until: f64) -> Result<(), String> {
        while let Some(&(stack, end)) = open.last().filter(|open| open.1 <= until) {
            self.spend(Some(stack), *now, end)?;
            *now = end;
            open.pop();
        }
        Ok(())
    }

    fn spend(&mut self, stack: Option<StackId>, from: f64, to: f64) -> Result<(), String> {
        let (Some(_), true) = (stack, to > from) else { return Ok(()) };
        // Times are rounded, not durations, so that sums are exact.
        let ns = |micros: f64| whole((micros * 1e3).max(0.0)).map(|(ns, _)| ns);
        let (from, to) = (ns(from)?, ns(to)?);
        let weight = self.assembly.weigh(to.saturating_sub(from)).ok_or(TOO_LARGE)?;
        if weight > 0 {
            let (thread, event) = (self.thread, self.event);
            self.assembly.sample(from, &Counted { thread, event, stack, count: 1, weight });
        }
        Ok(())
    }
}
