//! Writes a profile as trace events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use plumb_profile::{EventId, FrameId, FrameKind, Process, Profile, Sample, StackId, ThreadId};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::calls::{Call, Calls};

/// Writes, for each thread, a slice per function and time for which it was in all sampled stacks, with its callees' slices inside;
/// samples of events that do not measure time are instants with their stacks.
///
/// A stack lasts until the next sample of its thread, or, if that is more than half a sample late, for the time that the sample
/// represents. Activity between samples is not known, and weights only show in the durations of slices.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut out = Events { out: io::BufWriter::new(out), first: true };
    out.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
    let meta = &profile.meta;
    let other = json!({
        "exporter": format!("plumb {}", env!("CARGO_PKG_VERSION")),
        "command": meta.command.join(" "),
        "host": meta.host,
        "warnings": meta.warnings,
    });
    crate::json::write(&mut out.out, &other)?;
    out.out.write_all(b",\"traceEvents\":[\n")?;
    let mut threads: BTreeMap<(ThreadId, EventId), Vec<Sample>> = BTreeMap::new();
    for sample in profile.samples.iter() {
        threads.entry((sample.thread, sample.event)).or_default().push(sample);
    }
    let mut tracks = Tracks::new(profile);
    let mut names = Names { profile, calls: Calls::of(profile), known: HashMap::new() };
    for ((thread, event), samples) in &threads {
        let track = tracks.add(*thread, *event);
        track.name(&mut out)?;
        if profile.strings.get(profile.events[*event].unit) == "ns" {
            Slices { names: &mut names, track: &track, open: Vec::new(), end: 0 }.write(samples, &mut out)?;
        } else {
            instants(&mut names, &track, samples, &mut out)?;
        }
    }
    out.out.write_all(b"\n]}\n")?;
    out.out.flush()
}

/// Writes the list of events, one a line.
struct Events<W> {
    out: W,
    first: bool,
}

impl<W: Write> Events<W> {
    fn push(&mut self, event: &impl Serialize) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        Ok(crate::json::write(&mut self.out, event)?)
    }
}

/// The row for the slices of a thread and event.
struct Track {
    pid: u32,
    tid: u32,
    process: String,
    name: String,
}

impl Track {
    fn name(&self, out: &mut Events<impl Write>) -> io::Result<()> {
        for (what, name) in [("process_name", &self.process), ("thread_name", &self.name)] {
            let args = json!({ "name": name });
            out.push(&json!({ "ph": "M", "name": what, "pid": self.pid, "tid": self.tid, "args": args }))?;
        }
        Ok(())
    }
}

struct Tracks<'p> {
    profile: &'p Profile,
    used: HashSet<(u32, u32)>,
    /// Next number that is not a thread id.
    next: u32,
}

impl<'p> Tracks<'p> {
    fn new(profile: &'p Profile) -> Self {
        let tids = profile.threads.rows().iter().map(|thread| thread.tid).filter(|&tid| tid < 1 << 30);
        Tracks { profile, used: HashSet::new(), next: tids.max().unwrap_or(0) + 1 }
    }

    /// Returns the row of a thread and event. A renamed thread, or one with several events, has several, which need their own numbers.
    fn add(&mut self, thread: ThreadId, event: EventId) -> Track {
        let text = |id| self.profile.strings.get(id);
        let one = &self.profile.threads[thread];
        let Process { pid, exe, .. } = self.profile.processes[one.process];
        let known = |id: u32| if id < 1 << 30 { id } else { 0 };
        let (pid, mut tid) = (known(pid), known(one.tid));
        let mut name = text(one.comm).to_owned();
        if self.profile.events.len() > 1 {
            name.push_str(&format!(" ({})", text(self.profile.events[event].name)));
        }
        if !self.used.insert((pid, tid)) {
            name.push_str(&format!(" of {tid}"));
            tid = self.next;
            self.next += 1;
        }
        let process = text(exe).rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(text(one.comm));
        Track { pid, tid, process: process.into(), name }
    }
}

/// The name of a slice and its arguments.
#[derive(Clone, PartialEq, Eq)]
struct Name {
    name: String,
    category: &'static str,
    args: Map<String, Value>,
}

struct Names<'p> {
    profile: &'p Profile,
    calls: Calls<'p>,
    known: HashMap<FrameId, Vec<Name>>,
}

impl Names<'_> {
    /// Returns the names of a stack, outermost first.
    fn of_stack(&mut self, stack: Option<StackId>) -> Vec<Name> {
        let mut frames: Vec<FrameId> = self.profile.frames_of(stack).collect();
        frames.reverse();
        frames.into_iter().flat_map(|id| self.of_frame(id).to_vec()).collect()
    }

    fn of_frame(&mut self, id: FrameId) -> &[Name] {
        let (profile, calls) = (self.profile, &self.calls);
        self.known.entry(id).or_insert_with(|| {
            let category = match profile.frames[id].kind {
                FrameKind::User => "user",
                FrameKind::Kernel => "kernel",
                FrameKind::Truncation(_) => "cut",
            };
            let name = |call: Call<'_>| {
                let mut args = Map::new();
                for (key, text) in [("file", call.dso), ("source", call.file)] {
                    if !text.is_empty() {
                        args.insert(key.into(), text.into());
                    }
                }
                Name { name: call.name.into(), category, args }
            };
            calls.of_frame(id).into_iter().map(name).collect()
        })
    }
}

/// The open slices, outermost first.
struct Slices<'s, 'p> {
    names: &'s mut Names<'p>,
    track: &'s Track,
    open: Vec<Name>,
    /// End of the last stack.
    end: u64,
}

impl Slices<'_, '_> {
    fn write(mut self, samples: &[Sample], out: &mut Events<impl Write>) -> io::Result<()> {
        let start = self.names.profile.meta.start_ns;
        for (at, sample) in samples.iter().enumerate() {
            let from = sample.time_ns.saturating_sub(start);
            let alone = from.saturating_add(sample.weight);
            let next = samples.get(at + 1).map(|next| next.time_ns.saturating_sub(start));
            let most = alone.saturating_add(sample.weight / 2);
            let end = next.filter(|&next| next <= most).unwrap_or(alone);
            if from != self.end {
                self.close(0, self.end, out)?;
            }
            let names = self.names.of_stack(sample.stack);
            let same = self.open.iter().zip(&names).take_while(|(open, name)| open == name).count();
            self.close(same, from, out)?;
            for name in names.into_iter().skip(same) {
                self.push("B", &name, from, Some(&name.args), out)?;
                self.open.push(name);
            }
            self.end = end;
        }
        self.close(0, self.end, out)
    }

    /// Closes the slices from index `keep` on, innermost first.
    fn close(&mut self, keep: usize, end: u64, out: &mut Events<impl Write>) -> io::Result<()> {
        while self.open.len() > keep {
            let Some(name) = self.open.pop() else { break };
            self.push("E", &name, end, None, out)?;
        }
        Ok(())
    }

    /// Writes the begin or the end of a slice. Events of the same time keep their order, which a duration would not ensure:
    /// times and durations are fractions.
    fn push(
        &self,
        kind: &'static str,
        name: &Name,
        at: u64,
        args: Option<&Map<String, Value>>,
        out: &mut Events<impl Write>,
    ) -> io::Result<()> {
        out.push(&Edge {
            ph: kind,
            name: &name.name,
            cat: name.category,
            pid: self.track.pid,
            tid: self.track.tid,
            ts: micros(at),
            args,
        })
    }
}

#[derive(Serialize)]
struct Edge<'n> {
    ph: &'static str,
    name: &'n str,
    cat: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'n Map<String, Value>>,
}

fn instants(
    names: &mut Names<'_>,
    track: &Track,
    samples: &[Sample],
    out: &mut Events<impl Write>,
) -> io::Result<()> {
    let start = names.profile.meta.start_ns;
    for sample in samples {
        let stack = names.of_stack(sample.stack);
        let calls: Vec<&str> = stack.iter().map(|name| &*name.name).collect();
        let event = &names.profile.events[sample.event];
        out.push(&json!({
            "ph": "i",
            "s": "t",
            "name": names.profile.strings.get(event.name),
            "cat": "event",
            "pid": track.pid,
            "tid": track.tid,
            "ts": micros(sample.time_ns.saturating_sub(start)),
            "args": { "weight": sample.weight, "stack": calls },
        }))?;
    }
    Ok(())
}

/// Converts to the format's unit.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}
