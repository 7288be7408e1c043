//! Java Flight Recorder files: each kind of event becomes the profile types that Pyroscope derives from it, each context of the agent's labels
//! a series of its own.
//!
//! Invariant: the weight of a sample is that of the file; the request's sample rate is used only if the file has no period.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use plumb_formats::jfr::{self, JfrEvent, JfrRecording};
use plumb_profile::{EventId, Profile, StackId};
use plumb_store::{Batch, Labels, Millis, ProfileType, SeriesKey, StackNodeId, StoredFrame, StoredSample};
use prost::Message;

use super::builder::{StackBuilder, check_batch};
use super::decoded::too_large;
use super::labels::with_sample_labels;
use super::location::{self, LineFunction, LocationLine};
use super::pprof::without_stack;
use crate::connect::inflate;
use crate::error::ApiError;
use crate::options::IngestLimits;

/// Most bytes of memory for a byte of a file.
const GROWTH: usize = 4;

/// A file with the request's information on it.
pub(crate) struct JfrUpload<'u> {
    /// The file, gzipped or not.
    pub file: &'u [u8],
    /// Labels of contexts: a message, gzipped or not.
    pub labels: Option<&'u [u8]>,
    pub time: Millis,
    pub sample_rate: u32,
}

/// The labels that Pyroscope's Java agent sends with a file.
#[derive(Clone, PartialEq, Message)]
struct LabelsSnapshot {
    #[prost(map = "int64, message", tag = "1")]
    contexts: HashMap<i64, LabelsContext>,
    #[prost(map = "int64, string", tag = "2")]
    strings: HashMap<i64, String>,
}

/// The labels of a context: indices of strings.
#[derive(Clone, PartialEq, Message)]
struct LabelsContext {
    #[prost(map = "int64, int64", tag = "1")]
    labels: HashMap<i64, i64>,
}

impl LabelsSnapshot {
    fn of(&self, context: i64, most: usize) -> Result<BTreeMap<&str, &str>, ApiError> {
        let Some(labels) = self.contexts.get(&context).map(|context| &context.labels) else {
            return Ok(BTreeMap::new());
        };
        if labels.len() > most {
            let count = labels.len();
            return Err(malformed(format!("context {context} has {count} labels; limit {most}")));
        }
        let text = |number: &i64| {
            let text = self.strings.get(number).map(String::as_str);
            text.ok_or_else(|| malformed(format!("context {context}: there is no string {number} in labels")))
        };
        labels.iter().map(|(name, value)| Ok((text(name)?, text(value)?))).collect()
    }
}

/// Key of a sum: equal stacks of a kind in a context.
type SumKey = (JfrEvent, EventId, i64, Option<StackId>);

/// Adds the file. `labels` maps a profile's name to the labels of its series.
pub(crate) fn add(
    batch: &mut Batch,
    upload: &JfrUpload<'_>,
    labels: impl Fn(&str) -> Result<Labels, ApiError>,
    limits: &IngestLimits,
) -> Result<(), ApiError> {
    let snapshot = match upload.labels {
        Some(bytes) => LabelsSnapshot::decode(&unpacked(bytes, limits)?[..])
            .map_err(|error| malformed(format!("the field labels: {error}")))?,
        None => LabelsSnapshot::default(),
    };
    let recording = decoded(upload.file, limits)?;
    let profile = &recording.profile;
    let mut sums: BTreeMap<SumKey, (u64, u64)> = BTreeMap::new();
    for one in &recording.samples {
        let sum = sums.entry((one.kind, one.event, one.context, one.stack)).or_default();
        *sum = (sum.0.saturating_add(one.count), sum.1.saturating_add(one.weight));
    }
    let (mut stacks, mut series) = (HashMap::new(), HashMap::new());
    let mut builder = StackBuilder::new(limits);
    for ((kind, event, context, stack), (count, weight)) in sums {
        let one = Measured::of(kind, event, profile);
        let keys = match series.get(&(kind, event, context)) {
            Some(known) => known,
            None => {
                let own = snapshot.of(context, limits.sample_labels)?;
                let labels = with_sample_labels(&labels(one.name)?, own.into_iter(), limits)?;
                let keys: Vec<SeriesKey> =
                    one.types().iter().map(|kind| batch.series(labelled(kind, &labels))).collect();
                if batch.all_series().len() > limits.series {
                    let most = limits.series;
                    return Err(malformed(format!("its samples are of more than {most} series")));
                }
                series.entry((kind, event, context)).or_insert(keys)
            }
        };
        let node = match stacks.entry(stack) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(add_stack(batch, &mut builder, profile, stack)?),
        };
        let weight = match one.is_timed {
            true => weight,
            false => count.saturating_mul(1_000_000_000 / u64::from(upload.sample_rate.max(1))),
        };
        let values = if keys.len() == 2 { vec![count, weight] } else { vec![weight] };
        for (&series, value) in keys.iter().zip(values) {
            let value = i64::try_from(value)
                .map_err(|_| malformed(format!("{value} is more than 63 bits hold: {}", one.name)))?;
            batch.push(StoredSample { series, time: upload.time, stack: node, value });
        }
        check_batch(batch, limits)?;
    }
    Ok(())
}

fn unpacked(bytes: &[u8], limits: &IngestLimits) -> Result<Vec<u8>, ApiError> {
    match bytes.starts_with(b"\x1f\x8b") {
        true => inflate(bytes, limits.unpacked),
        false => Ok(bytes.to_vec()),
    }
}

fn decoded(file: &[u8], limits: &IngestLimits) -> Result<JfrRecording, ApiError> {
    let file = unpacked(file, limits)?;
    if file.len().saturating_mul(GROWTH) > limits.memory.decoded {
        return Err(too_large(limits.memory.decoded));
    }
    Ok(jfr::decode(&file, limits.samples)?)
}

/// Storage of a kind of event.
struct Measured {
    /// Name of the profile.
    name: &'static str,
    /// Types with their units: the weight alone, or the number of events and the weight.
    types: Vec<(String, &'static str)>,
    period: (String, &'static str),
    /// Whether the file has the weight of samples.
    is_timed: bool,
}

impl Measured {
    fn of(kind: JfrEvent, event: EventId, profile: &Profile) -> Self {
        const NS: &str = "nanoseconds";
        let event = &profile.events[event];
        let counter = || profile.strings.get(event.name).replace([':', '{', '"'], "_");
        let one = |name, kind: String, unit| (name, vec![(kind.clone(), unit)], (kind, unit));
        let two = |name, objects: &str, weight: (&str, &'static str), period: (&str, &'static str)| {
            let types = vec![(objects.to_owned(), "count"), (weight.0.to_owned(), weight.1)];
            (name, types, (period.0.to_owned(), period.1))
        };
        let memory =
            |objects: &str, bytes: &str| two("memory", objects, (bytes, "bytes"), ("space", "bytes"));
        let (name, types, period) = match kind {
            JfrEvent::Cpu => two("process_cpu", "samples", ("cpu", NS), ("cpu", NS)),
            JfrEvent::Counter => one("process_cpu", counter(), "count"),
            JfrEvent::NativeMethod => one("native_method", "native_method".into(), NS),
            JfrEvent::Wall => one("wall", "wall".into(), NS),
            JfrEvent::AllocInNewTlab => memory("alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes"),
            JfrEvent::AllocOutsideTlab => memory("alloc_outside_tlab_objects", "alloc_outside_tlab_bytes"),
            JfrEvent::AllocSample => memory("alloc_sample_objects", "alloc_sample_bytes"),
            JfrEvent::MonitorEnter => two("mutex", "contentions", ("delay", NS), ("mutex", "count")),
            JfrEvent::Park => two("block", "contentions", ("delay", NS), ("block", "count")),
        };
        let has_unit = !profile.strings.get(event.unit).is_empty();
        Self { name, types, period, is_timed: has_unit || kind == JfrEvent::Counter }
    }

    fn types(&self) -> Vec<ProfileType> {
        let kind = |(sample_type, sample_unit): &(String, &str)| ProfileType {
            name: self.name.into(),
            sample_type: sample_type.clone(),
            sample_unit: (*sample_unit).into(),
            period_type: self.period.0.clone(),
            period_unit: self.period.1.into(),
        };
        self.types.iter().map(kind).collect()
    }
}

fn labelled(kind: &ProfileType, labels: &Labels) -> Labels {
    let mut labels = labels.clone();
    kind.label(&mut labels);
    labels
}

fn add_stack(
    batch: &mut Batch,
    builder: &mut StackBuilder,
    profile: &Profile,
    stack: Option<StackId>,
) -> Result<StackNodeId, ApiError> {
    let mut frames: Vec<_> = profile.frames_of(stack).collect();
    frames.reverse();
    for id in frames {
        let frame = &profile.frames[id];
        let text = |id| profile.strings.get(id);
        let dictionary = &mut batch.dictionary;
        let mut line = |name: &str, line: u32| {
            let name = dictionary.text(name);
            let function = LineFunction { name, system_name: name, file: dictionary.text(""), start_line: 0 };
            LocationLine { function: Some(function), line: line.into() }
        };
        let lines: Vec<LocationLine> = match frame.cut() {
            Some(cut) => vec![line(&format!("[{}]", cut.text()), 0)],
            None => {
                let lines = profile.symbols.of(id).iter();
                lines.map(|one| line(text(profile.symbols.functions[one.function].name), one.line)).collect()
            }
        };
        let mapping = frame.dso.map_or("", |dso| text(profile.dsos[dso].path));
        let file = StoredFrame { mapping: dictionary.text(mapping), ..StoredFrame::default() };
        for key in location::frames(dictionary, file, &lines) {
            builder.add(dictionary, key)?;
        }
    }
    Ok(builder.end().unwrap_or_else(|| without_stack(batch)))
}

fn malformed(message: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!("malformed JFR recording: {message}"))
}
