//! Reads a file as saved by speedscope or other tools: both kinds of profiles, sampled and evented.

use std::borrow::Cow;

use plumb_profile::{EventId, FrameId, FrameKind, Profile, StackId, ThreadId};
use serde::Deserialize;

use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE, whole};

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    shared: Shared<'a>,
    #[serde(borrow)]
    profiles: Vec<One<'a>>,
    #[serde(borrow, default)]
    exporter: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Shared<'a> {
    #[serde(borrow)]
    frames: Vec<Frame<'a>>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    file: Option<Cow<'a, str>>,
    #[serde(default)]
    line: Option<f64>,
}

/// A profile of either kind: fields of the other kind are empty.
#[derive(Deserialize)]
struct One<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    unit: Cow<'a, str>,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<Change>,
}

/// A frame is opened or closed.
#[derive(Deserialize)]
struct Change {
    #[serde(rename = "type")]
    kind: Kind,
    frame: usize,
    at: f64,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
enum Kind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// Reads the file.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let file: File<'_> = serde_json::from_slice(bytes)?;
    let mut reading = Reading { assembly: Assembly::new(), frames: Vec::new(), inexact: 0 };
    for frame in &file.shared.frames {
        let place = Place {
            name: &frame.name,
            file: frame.file.as_deref().unwrap_or_default(),
            // The conversion saturates.
            line: frame.line.unwrap_or_default() as u32,
            ..Place::default()
        };
        reading.frames.push(reading.assembly.frame(FrameKind::User, "", &[place]));
    }
    let mut timed = true;
    for (row, one) in file.profiles.iter().enumerate() {
        let wrong = |message: String| ForeignError::Row { table: "profiles", row, message };
        match &*one.kind {
            "sampled" => {
                timed = false;
                reading.sampled(one, &file.shared.frames)
            }
            "evented" => reading.evented(one),
            kind => Err(format!("its type is `{kind}`, which is none")),
        }
        .map_err(wrong)?;
    }
    let times = if timed { "" } else { "when samples were taken, " };
    let warnings = &mut reading.assembly.profile.meta.warnings;
    warnings.push(format!(
        "imported from speedscope, which tells neither {times}processors, files of programs, addresses, inlined calls, nor what is counted"
    ));
    if reading.inexact > 0 {
        warnings.push(format!("{} values have fractions: they are rounded", reading.inexact));
    }
    let recorder = file.exporter.filter(|text| text.starts_with("plumb "));
    Ok(reading.assembly.finish(recorder.as_deref().unwrap_or("speedscope")))
}

struct Reading {
    assembly: Assembly,
    frames: Vec<FrameId>,
    /// Number of values that are not whole numbers of their unit.
    inexact: u64,
}

impl Reading {
    /// Returns the thread and event of a profile, and the factor from its unit to the event's.
    fn whose(&mut self, one: &One<'_>) -> (ThreadId, EventId, f64) {
        let (unit, factor) = match &*one.unit {
            "nanoseconds" => ("ns", 1.0),
            "microseconds" => ("ns", 1e3),
            "milliseconds" => ("ns", 1e6),
            "seconds" => ("ns", 1e9),
            "none" => ("", 1.0),
            unit => (unit, 1.0),
        };
        let (comm, ids, event) = whose(&one.name);
        let event = match event {
            "" if unit == "ns" => "time",
            "" if unit.is_empty() => "weight",
            "" => unit,
            event => event,
        };
        let event = self.assembly.event(event, unit);
        (self.assembly.thread(ids.map(|ids| ids.0), ids.map(|ids| ids.1), comm, ""), event, factor)
    }

    fn frame(&self, index: usize) -> Result<FrameId, String> {
        self.frames.get(index).copied().ok_or_else(|| format!("there is no frame {index}"))
    }

    /// Returns the weight of sample or event number `at`.
    fn weight(&mut self, at: usize, value: f64) -> Result<u64, String> {
        let (weight, has_fraction) =
            whole(value).map_err(|why| format!("number {at}, whose weight is {value}: it {why}"))?;
        self.inexact += u64::from(has_fraction);
        self.assembly.weigh(weight).ok_or_else(|| format!("number {at}: {TOO_LARGE}"))
    }

    fn sampled(&mut self, one: &One<'_>, frames: &[Frame<'_>]) -> Result<(), String> {
        let (thread, event, factor) = self.whose(one);
        if one.samples.len() != one.weights.len() {
            return Err(format!("it has {} samples and {} weights", one.samples.len(), one.weights.len()));
        }
        for (at, (sample, &weight)) in one.samples.iter().zip(&one.weights).enumerate() {
            let mut stack = None;
            for (depth, &index) in sample.iter().enumerate() {
                let mut frame = self.frame(index)?;
                if depth == 0
                    && let Some(marker) = self.assembly.marker(&frames[index].name)
                {
                    frame = marker;
                }
                stack = Some(self.assembly.profile.stacks.add(stack, frame));
            }
            let weight = self.weight(at, weight * factor)?;
            self.assembly.sample(0, &Counted { thread, event, stack, count: 1, weight });
        }
        Ok(())
    }

    /// Assigns the time between two events to the open frames.
    fn evented(&mut self, one: &One<'_>) -> Result<(), String> {
        let (thread, event, factor) = self.whose(one);
        let mut open: Vec<(usize, StackId)> = Vec::new();
        let mut last = one.events.first().map_or(0.0, |change| change.at);
        for (at, change) in one.events.iter().enumerate() {
            if change.at < last {
                return Err(format!("an event at {} comes after one at {last}", change.at));
            }
            let stack = open.last().map(|&(_, stack)| stack);
            let passed = (change.at - last) * factor;
            let weight = if stack.is_some() { self.weight(at, passed)? } else { 0 };
            if stack.is_some() && weight > 0 {
                let time_ns = (last * factor).max(0.0) as u64;
                self.assembly.sample(time_ns, &Counted { thread, event, stack, count: 1, weight });
            }
            last = change.at;
            match (change.kind, open.last()) {
                (Kind::Open, _) => {
                    let frame = self.frame(change.frame)?;
                    open.push((change.frame, self.assembly.profile.stacks.add(stack, frame)));
                }
                (Kind::Close, Some(&(frame, _))) if frame == change.frame => {
                    open.pop();
                }
                (Kind::Close, _) => {
                    return Err(format!("frame {} is left that was not entered last", change.frame));
                }
            }
        }
        Ok(())
    }
}

/// Splits a profile's name as plumb writes it, `name (pid 1, tid 2) event`, into the thread's name, its process and thread ids, and the event.
/// Any other name is the thread's as a whole.
fn whose(name: &str) -> (&str, Option<(u32, u32)>, &str) {
    let parts = || {
        let (comm, rest) = name.rsplit_once(" (pid ")?;
        let (ids, event) = rest.split_once(')')?;
        let (pid, tid) = ids.split_once(", tid ")?;
        Some((comm, Some((pid.parse().ok()?, tid.parse().ok()?)), event.trim_start()))
    };
    parts().unwrap_or((name, None, ""))
}
