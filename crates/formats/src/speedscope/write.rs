//! Writes a profile in speedscope's format.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use plumb_profile::{EventId, FrameId, Process, Profile, StackId, ThreadId};
use serde::Serialize;

use crate::calls::{Call, Calls};
use crate::json;

/// Writes a profile for each thread and event, the heaviest first, with its samples sorted by time.
///
/// Inlined calls are frames of their own; a truncated stack begins with a frame in brackets that has the reason; a frame without a
/// name has its address and file.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut frames = Frames {
        profile,
        calls: Calls::of(profile),
        list: Vec::new(),
        known: HashMap::new(),
        of: HashMap::new(),
    };
    let mut stacks: HashMap<StackId, Vec<usize>> = HashMap::new();
    let mut threads: BTreeMap<(ThreadId, EventId), Sampled> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let stack = sample.stack.map_or_else(Vec::new, |stack| {
            stacks.entry(stack).or_insert_with(|| frames.stack(stack)).clone()
        });
        let thread = threads.entry((sample.thread, sample.event)).or_default();
        thread.samples.push(stack);
        thread.weights.push(sample.weight);
    }
    let mut profiles: Vec<Sampled> =
        threads.into_iter().map(|((thread, event), sampled)| sampled.named(profile, thread, event)).collect();
    profiles.sort_by_key(|sampled| std::cmp::Reverse(sampled.end_value));
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared { frames: frames.list },
        profiles,
        name: profile.meta.command.join(" "),
        active_profile_index: 0,
        exporter: format!("plumb {}", env!("CARGO_PKG_VERSION")),
    };
    let mut out = io::BufWriter::new(out);
    json::write(&mut out, &file)?;
    out.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared,
    profiles: Vec<Sampled>,
    name: String,
    active_profile_index: usize,
    exporter: String,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Frames of each sample, outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

impl Sampled {
    fn named(self, profile: &Profile, thread: ThreadId, event: EventId) -> Self {
        let one = &profile.threads[thread];
        let text = |id| profile.strings.get(id);
        let pid = profile.processes[one.process].pid;
        let mut name = text(one.comm).to_owned();
        if pid != Process::UNKNOWN {
            name.push_str(&format!(" (pid {pid}, tid {})", one.tid));
        }
        let unit = profile.events.rows().get(plumb_profile::Id::index(event)).map(|event| {
            if profile.events.rows().len() > 1 {
                name.push_str(&format!(" {}", text(event.name)));
            }
            if text(event.unit) == "ns" { "nanoseconds" } else { "none" }
        });
        let end_value = self.weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
        Sampled { kind: "sampled", name, unit: unit.unwrap_or("none"), start_value: 0, end_value, ..self }
    }
}

/// Distinct frames.
struct Frames<'p> {
    profile: &'p Profile,
    calls: Calls<'p>,
    list: Vec<Frame>,
    known: HashMap<Frame, usize>,
    of: HashMap<FrameId, Vec<usize>>,
}

impl Frames<'_> {
    /// Returns the indices of a stack's frames, outermost first.
    fn stack(&mut self, stack: StackId) -> Vec<usize> {
        let mut frames: Vec<FrameId> = self.profile.frames_of(Some(stack)).collect();
        frames.reverse();
        frames.into_iter().flat_map(|id| self.places(id)).collect()
    }

    fn places(&mut self, id: FrameId) -> Vec<usize> {
        if let Some(known) = self.of.get(&id) {
            return known.clone();
        }
        let frame =
            |call: Call<'_>| Frame { name: call.name.into(), file: call.file.into(), line: call.line };
        let frames = self.calls.of_frame(id).into_iter().map(frame);
        let places: Vec<usize> =
            frames.collect::<Vec<_>>().into_iter().map(|frame| self.place(frame)).collect();
        self.of.insert(id, places.clone());
        places
    }

    fn place(&mut self, frame: Frame) -> usize {
        let next = self.list.len();
        let place = *self.known.entry(frame.clone()).or_insert(next);
        if place == next {
            self.list.push(frame);
        }
        place
    }
}
