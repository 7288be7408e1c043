//! Writes a profile as OpenTelemetry has it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use plumb_profile::{EventId, Process, Profile, StackId, ThreadId};
use prost::Message;

use super::dictionary::DictionaryTables;
use super::message::{self, AnyValue, OneValue};

/// Writes a profile per event, in which equal stacks of a thread are one sample with all its times and weights, or with their
/// sum if the recording has no times.
///
/// Attributes follow the semantic conventions: process and thread of samples, build id of files, kind of frames.
pub fn write<W: Write>(profile: &Profile, mut out: W) -> io::Result<()> {
    let mut made = DictionaryTables::new(profile);
    let events = profile.events.iter().map(|(event, _)| event);
    let profiles = events.map(|event| event_profile(&mut made, event)).collect();
    let scope =
        message::InstrumentationScope { name: "plumb".into(), version: env!("CARGO_PKG_VERSION").into() };
    let scope_profiles = vec![message::ScopeProfiles { scope: Some(scope), profiles }];
    let resource = Some(resource(profile));
    let data = message::ProfilesData {
        resource_profiles: vec![message::ResourceProfiles { resource, scope_profiles }],
        dictionary: Some(made.dictionary()),
    };
    out.write_all(&data.encode_to_vec())?;
    out.flush()
}

fn resource(profile: &Profile) -> message::Resource {
    let meta = &profile.meta;
    let command = meta.command.join(" ");
    let known = [
        ("host.name", &meta.host),
        ("host.arch", &meta.arch),
        ("os.version", &meta.kernel),
        ("process.command_line", &command),
    ];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    message::Resource {
        attributes: known.map(|(key, value)| message::KeyValue::of_text(key, value)).collect(),
    }
}

/// The key of samples of one event.
type Whose = (ThreadId, Option<StackId>);

/// Returns type and unit of an event as readers know them. Without hyphens: Pyroscope rejects types that contain one.
pub(super) fn type_and_unit(recording: &Profile, event: EventId) -> (Cow<'_, str>, &str) {
    let one = &recording.events[event];
    let event = recording.strings.get(one.name);
    let unit = match recording.strings.get(one.unit) {
        "ns" => "nanoseconds",
        "" => "count",
        // For other events, samples count occurrences.
        unit if unit == event => "count",
        unit => unit,
    };
    let name = match event {
        "cpu-clock" | "task-clock" => "cpu".into(),
        name if name.contains('-') => name.replace('-', "_").into(),
        name => name.into(),
    };
    (name, unit)
}

fn event_profile(tables: &mut DictionaryTables<'_>, event: EventId) -> message::Profile {
    let recording = tables.profile;
    let meta = &recording.meta;
    let (name, unit) = type_and_unit(recording, event);
    let kind = message::ValueType { type_strindex: tables.string(&name), unit_strindex: tables.string(unit) };
    let mut sums: BTreeMap<Whose, (Vec<u64>, Vec<i64>)> = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.event == event) {
        let (times, values) = sums.entry((sample.thread, sample.stack)).or_default();
        let weight = i64::try_from(sample.weight).unwrap_or(i64::MAX);
        match (meta.start_unix_ns, values.first_mut()) {
            (0, Some(sum)) => *sum = sum.saturating_add(weight),
            (0, None) => values.push(weight),
            (start, _) => {
                let since = sample.time_ns.saturating_sub(meta.start_ns);
                times.push(start.saturating_add(since));
                values.push(weight);
            }
        }
    }
    let samples = sums.into_iter().map(|((thread, stack), (timestamps_unix_nano, values))| {
        let stack_index = stack.map_or(0, |stack| tables.stack(stack));
        let attribute_indices = whose(tables, thread);
        message::OtlpSample { stack_index, attribute_indices, values, timestamps_unix_nano }
    });
    let samples = samples.collect();
    let period = meta.frequency_hz.filter(|_| unit == "nanoseconds" && name == "cpu");
    message::Profile {
        sample_type: Some(kind),
        samples,
        time_unix_nano: meta.start_unix_ns,
        duration_nano: meta.duration_ns,
        period_type: period.map(|_| kind),
        period: period.map_or(0, |hz| 1_000_000_000 / i64::from(hz.max(1))),
    }
}

fn whose(tables: &mut DictionaryTables<'_>, thread: ThreadId) -> Vec<i32> {
    let profile = tables.profile;
    let one = &profile.threads[thread];
    let Process { pid, exe, .. } = profile.processes[one.process];
    let mut attributes = Vec::new();
    for (name, value) in [("process.executable.path", exe), ("thread.name", one.comm)] {
        let value = profile.strings.get(value);
        if !value.is_empty() {
            attributes.push(tables.attribute(name, AnyValue::of_text(value)));
        }
    }
    for (name, id) in [("process.pid", pid), ("thread.id", one.tid)] {
        if id != Process::UNKNOWN {
            attributes.push(tables.attribute(name, AnyValue { value: Some(OneValue::Number(id.into())) }));
        }
    }
    attributes
}
