//! Writes samples aggregated by stack, a profile per resource, with a common dictionary, as sent by a recorder of a whole machine.
//!
//! Invariant: the values of a resource's profile add up to the weights of its samples. Samples keep neither their times nor their threads.
//! A clock's samples are counted in a profile of their own: its period may differ from request to request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plumb_profile::{EventId, ProcessId, Profile, StackId};
use prost::Message;

use super::dictionary::DictionaryTables;
use super::message::{self, KeyValue};
use super::write::type_and_unit;

/// The resources of the samples, and the time of recording.
#[derive(Clone, Debug, Default)]
pub struct ResourceSet {
    /// Attributes of each resource.
    pub resources: Vec<Vec<(String, String)>>,
    /// For each process the index of its resource in `resources`; without one its samples are left out.
    pub of_process: BTreeMap<ProcessId, usize>,
    /// Values that are not samples, such as the recorder's own CPU time.
    pub figures: Vec<Figure>,
    /// Bursts of the resources' CPU time, which is in their samples too.
    pub bursts: Vec<BurstSamples>,
    /// Start of the recording, in nanoseconds since 1970.
    pub time_unix_ns: u64,
    /// Duration of the recording in nanoseconds.
    pub duration_ns: u64,
    /// Sampling period of a clock, in nanoseconds.
    pub period_ns: u64,
}

/// Name of a figure of the recorder: the CPU capacity of its machine, in nanoseconds.
pub const MACHINE_TIME: &str = "agent_machine";
/// Name of a figure of a service: the interval at which it wakes up, in nanoseconds.
pub const WAKE_PERIOD: &str = "wake_period";
/// Name of a figure of a service: an observation. Its frame is a sentence, and its value is the observation's weight.
pub const OBSERVATION: &str = "observation";

/// Name of a service's CPU time in a burst, whose beginning is the profile's time.
pub const BURST: &str = "burst_cpu";
/// Name of a figure of a service: the length of the burst that begins at its time, in nanoseconds.
pub const BURST_LENGTH: &str = "burst_length";

/// Sample type of the numbers of samples. With a period of CPU time they would be that time, of which Pyroscope would then have twice as much: their
/// period is one of themselves.
pub const SAMPLES: &str = "samples";

/// Names of frames, innermost first.
pub type FigureStack = Vec<Cow<'static, str>>;

/// A value that is not a sample. Figures of a resource with the same name, unit and time form one profile, with a stack for each.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Index of its resource.
    pub resource: usize,
    /// The quantity.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// Names of its frames, innermost first.
    pub stack: FigureStack,
    /// The value.
    pub value: u64,
    /// Time of measurement, in nanoseconds since 1970; `None`: the whole time of the samples. A service has at most one figure per name, stack and
    /// time.
    pub time_unix_ns: Option<u64>,
}

/// The samples of a burst: a moment in which a service takes more CPU time than usually.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BurstSamples {
    /// Index of its resource.
    pub resource: usize,
    /// Time of the first sample, in nanoseconds since 1970.
    pub time_unix_ns: u64,
    /// Time from the first sample to the last one, in nanoseconds.
    pub length_ns: u64,
    /// CPU time of each stack, in nanoseconds.
    pub stacks: BTreeMap<Option<StackId>, u64>,
}

/// The samples of a resource and an event in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSamples {
    /// Number of samples.
    pub samples: u64,
    /// Total weight.
    pub weight: u64,
}

impl EventSamples {
    fn add(&mut self, weight: u64) {
        self.samples += 1;
        self.weight += weight;
    }
}

/// The samples of a resource in a request, by event.
pub type ResourceSamples = BTreeMap<EventId, EventSamples>;

/// Samples by stack.
type StackSamples = BTreeMap<Option<StackId>, EventSamples>;

/// The sums of each resource: its samples, and those of each stack by event.
#[derive(Clone, Default)]
struct Sums {
    all: ResourceSamples,
    stacks: BTreeMap<EventId, StackSamples>,
}

/// A request with the samples of all events, a profile for each.
pub struct EncodedRequest {
    /// The request.
    pub bytes: Vec<u8>,
    /// The samples of each resource in it.
    pub of_resources: Vec<ResourceSamples>,
    /// The samples left out, because they have no resource.
    pub left_out: ResourceSamples,
}

/// Creates a request.
pub fn encode_by_resource(profile: &Profile, set: &ResourceSet) -> EncodedRequest {
    let mut tables = DictionaryTables::new(profile);
    let (sums, left_out) = sums(profile, set);
    let of_resources = sums.iter().map(|sums| sums.all.clone()).collect();
    let scope =
        message::InstrumentationScope { name: "plumb".into(), version: env!("CARGO_PKG_VERSION").into() };
    let mut figures = figures_by_resource(set);
    let mut resource_profiles = Vec::new();
    for (place, (attributes, sums)) in set.resources.iter().zip(&sums).enumerate() {
        let of_events = sums.stacks.iter();
        let mut profiles: Vec<message::Profile> =
            of_events.flat_map(|(&event, stacks)| of_samples(&mut tables, set, event, stacks)).collect();
        let figures = figures.remove(&place).unwrap_or_default();
        profiles.extend(figures.iter().map(|of_kind| of_figures(&mut tables, set, of_kind)));
        let bursts = set.bursts.iter().filter(|burst| burst.resource == place);
        profiles.extend(bursts.flat_map(|burst| of_burst(&mut tables, set, burst)));
        if profiles.is_empty() {
            continue;
        }
        let attributes = attributes.iter().map(|(key, value)| KeyValue::of_text(key, value)).collect();
        resource_profiles.push(message::ResourceProfiles {
            resource: Some(message::Resource { attributes }),
            scope_profiles: vec![message::ScopeProfiles { scope: Some(scope.clone()), profiles }],
        });
    }
    let data = message::ProfilesData { resource_profiles, dictionary: Some(tables.dictionary()) };
    EncodedRequest { bytes: data.encode_to_vec(), of_resources, left_out }
}

/// Returns the sums by resource, and those without one.
fn sums(profile: &Profile, set: &ResourceSet) -> (Vec<Sums>, ResourceSamples) {
    let mut sums = vec![Sums::default(); set.resources.len()];
    let mut left_out = ResourceSamples::new();
    for sample in profile.samples.iter() {
        let process = profile.threads[sample.thread].process;
        let all = match set.of_process.get(&process).and_then(|&place| sums.get_mut(place)) {
            Some(Sums { all, stacks }) => {
                stacks.entry(sample.event).or_default().entry(sample.stack).or_default().add(sample.weight);
                all
            }
            None => &mut left_out,
        };
        all.entry(sample.event).or_default().add(sample.weight);
    }
    (sums, left_out)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The profile of an event, and for a clock one with the numbers of its samples.
fn of_samples(
    tables: &mut DictionaryTables<'_>,
    set: &ResourceSet,
    event: EventId,
    stacks: &StackSamples,
) -> Vec<message::Profile> {
    let (name, unit) = type_and_unit(tables.profile, event);
    let weights = of_values(tables, set, (&name, unit), stacks, |samples| samples.weight);
    if name != "cpu" {
        return vec![weights];
    }
    vec![weights, of_values(tables, set, (SAMPLES, "count"), stacks, |samples| samples.samples)]
}

fn of_values(
    tables: &mut DictionaryTables<'_>,
    set: &ResourceSet,
    (name, unit): (&str, &str),
    stacks: &StackSamples,
    value: impl Fn(&EventSamples) -> u64,
) -> message::Profile {
    let kind = kind(tables, name, unit);
    let (period_type, period) = period(set, name, kind);
    let samples = stacks.iter().map(|(&stack, samples)| message::OtlpSample {
        stack_index: stack.map_or(0, |stack| tables.stack(stack)),
        values: vec![number(value(samples))],
        ..message::OtlpSample::default()
    });
    message::Profile {
        sample_type: Some(kind),
        samples: samples.collect(),
        time_unix_nano: set.time_unix_ns,
        duration_nano: set.duration_ns,
        period_type,
        period,
    }
}

/// The profiles of a burst: its stacks, and its length.
fn of_burst(
    tables: &mut DictionaryTables<'_>,
    set: &ResourceSet,
    burst: &BurstSamples,
) -> [message::Profile; 2] {
    let of_stack = |(&stack, &weight): (&Option<StackId>, &u64)| message::OtlpSample {
        stack_index: stack.map_or(0, |stack| tables.stack(stack)),
        values: vec![number(weight)],
        ..message::OtlpSample::default()
    };
    let stacks = burst.stacks.iter().map(of_stack).collect();
    let length = message::OtlpSample {
        stack_index: tables.named_stack(&["burst".into()]),
        values: vec![number(burst.length_ns)],
        ..message::OtlpSample::default()
    };
    [(BURST, stacks), (BURST_LENGTH, vec![length])].map(|(name, samples)| {
        let kind = kind(tables, name, "nanoseconds");
        let (period_type, period) = period(set, name, kind);
        message::Profile {
            sample_type: Some(kind),
            samples,
            time_unix_nano: burst.time_unix_ns,
            duration_nano: burst.length_ns,
            period_type,
            period,
        }
    })
}

/// Groups figures by resource, and within it by name, unit and time.
fn figures_by_resource(set: &ResourceSet) -> BTreeMap<usize, Vec<Vec<&Figure>>> {
    let mut places = BTreeMap::new();
    let mut figures: BTreeMap<usize, Vec<Vec<&Figure>>> = BTreeMap::new();
    for figure in &set.figures {
        let of_resource = figures.entry(figure.resource).or_default();
        let key = (figure.resource, figure.name, figure.unit, figure.time_unix_ns);
        let place = *places.entry(key).or_insert(of_resource.len());
        if place == of_resource.len() {
            of_resource.push(Vec::new());
        }
        of_resource[place].push(figure);
    }
    figures
}

/// Creates the profile of figures with a common name, unit and time (`of_kind`).
fn of_figures(tables: &mut DictionaryTables<'_>, set: &ResourceSet, of_kind: &[&Figure]) -> message::Profile {
    let Some(first) = of_kind.first() else { return message::Profile::default() };
    let sample = |figure: &&Figure| message::OtlpSample {
        stack_index: tables.named_stack(&figure.stack),
        values: vec![number(figure.value)],
        ..message::OtlpSample::default()
    };
    let samples = of_kind.iter().map(sample).collect();
    let kind = kind(tables, first.name, first.unit);
    let (period_type, period) = period(set, first.name, kind);
    message::Profile {
        sample_type: Some(kind),
        samples,
        time_unix_nano: first.time_unix_ns.unwrap_or(set.time_unix_ns),
        duration_nano: if first.time_unix_ns.is_some() { 0 } else { set.duration_ns },
        period_type,
        period,
    }
}

/// Returns the sampling period: one of the unit counted, if it is not a clock. Pyroscope takes a profile's name from it and rejects the
/// whole request if one has none, except for off-CPU time, which it recognizes without.
fn period(set: &ResourceSet, name: &str, kind: message::ValueType) -> (Option<message::ValueType>, i64) {
    match name {
        "cpu" => (Some(kind), number(set.period_ns)),
        "off_cpu" => (None, 0),
        _ => (Some(kind), 1),
    }
}

fn kind(tables: &mut DictionaryTables<'_>, name: &str, unit: &str) -> message::ValueType {
    message::ValueType { type_strindex: tables.string(name), unit_strindex: tables.string(unit) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
    use plumb_profile::{Event, Frame, Process, Sample, Thread};
    use prost::Message as _;

    use super::*;

    /// Two processes with the same stack, the first sampled twice; a third has no resource.
    fn profile() -> (Profile, Vec<ProcessId>) {
        let mut profile = Profile::default();
        let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
        let event = profile.events.push(Event { name, unit });
        let frame = profile.frames.add(Frame::marker(plumb_profile::Truncation::NoUserStack, None));
        let stack = profile.add_stack(&[frame]);
        let mut processes = Vec::new();
        for (pid, samples) in [(1, 2), (2, 1), (3, 1)] {
            let empty = profile.strings.empty();
            let process = profile.processes.push(Process { pid, ppid: 0, exe: empty });
            let thread = profile.threads.push(Thread { process, tid: pid, comm: empty });
            processes.push(process);
            for time_ns in 0..samples {
                let sample = Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 10 };
                profile.samples.push(sample);
            }
        }
        (profile, processes)
    }

    #[test]
    fn samples_are_summed_by_resource() {
        let (profile, processes) = profile();
        let service = |name: &str| vec![("service.name".to_owned(), name.to_owned())];
        let figure = Figure {
            resource: 1,
            name: "agent_cpu",
            unit: "nanoseconds",
            stack: vec!["own".into()],
            value: 7,
            time_unix_ns: None,
        };
        let of_call =
            |frame: &'static str, value| Figure { stack: vec![frame.into()], value, ..figure.clone() };
        let of_calls = ["read", "write"].map(|frame| Figure { name: "calls", ..of_call(frame, 3) });
        let set = ResourceSet {
            resources: vec![service("a"), service("b"), service("none")],
            of_process: [(processes[0], 0), (processes[1], 1)].into(),
            figures: [of_calls[0].clone(), figure.clone(), of_calls[1].clone()].into(),
            bursts: vec![BurstSamples {
                resource: 0,
                time_unix_ns: 7,
                length_ns: 3,
                stacks: profile.samples.iter().take(1).map(|sample| (sample.stack, 15)).collect(),
            }],
            time_unix_ns: 5,
            duration_ns: 6,
            period_ns: 10,
        };
        let EncodedRequest { bytes, of_resources, left_out } = encode_by_resource(&profile, &set);
        let of = |one: &ResourceSamples| one.values().map(|of| (of.samples, of.weight)).collect::<Vec<_>>();
        assert_eq!(of_resources.iter().map(of).collect::<Vec<_>>(), [vec![(2, 20)], vec![(1, 10)], vec![]]);
        assert_eq!(of(&left_out), [(1, 10)]);
        // Decoded by its own generated code.
        let data = ProfilesData::decode(&*bytes).unwrap();
        let strings = &data.dictionary.as_ref().unwrap().string_table;
        let mut read = Vec::new();
        for resource in &data.resource_profiles {
            let service = resource.resource.as_ref().unwrap().attributes[0].value.clone().unwrap();
            for one in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
                let kind = one.sample_type.as_ref().unwrap();
                let values: i64 = one.samples.iter().flat_map(|sample| &sample.values).sum();
                let service = format!("{:?}", service.value.as_ref().unwrap());
                read.push((service, strings[kind.type_strindex as usize].clone(), values));
                let name = &*strings[kind.type_strindex as usize];
                let when = if name.starts_with("burst") { (7, 3) } else { (5, 6) };
                assert_eq!((one.time_unix_nano, one.duration_nano), when, "{name}");
                let is_clock = name == "cpu";
                assert_eq!(
                    (one.period_type.as_ref(), one.period),
                    (Some(kind), if is_clock { 10 } else { 1 })
                );
            }
        }
        let expected = [
            ("a", "cpu", 20),
            ("a", "samples", 2),
            ("a", "burst_cpu", 15),
            ("a", "burst_length", 3),
            ("b", "cpu", 10),
            ("b", "samples", 1),
            ("b", "calls", 6),
            ("b", "agent_cpu", 7),
        ];
        assert_eq!(read.len(), expected.len(), "{read:?}");
        for ((service, kind, value), (name, expected_kind, sum)) in read.iter().zip(expected) {
            assert!(service.contains(&format!("\"{name}\"")), "{service}");
            assert_eq!((kind.as_str(), *value), (expected_kind, sum));
        }
    }
}
