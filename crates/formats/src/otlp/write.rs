//! Writes a profile as OpenTelemetry has it.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io::{self, Write};

use plumb_profile::{Dso, DsoId, DsoKind, EventId, FrameId, FrameKind, Process, Profile, StackId, ThreadId};
use prost::Message;

use super::message::{self, AnyValue, OneValue};

/// Writes a profile for each event, in which equal stacks of a thread are one sample with all its times and weights. Where the recording
/// doesn't know what the time was, its sum.
///
/// Attributes are those of the semantic conventions: of samples the process and the thread, of files the build id, of frames their kind.
pub fn write<W: Write>(profile: &Profile, mut out: W) -> io::Result<()> {
    let mut made = Made::new(profile);
    let events = profile.events.iter().map(|(event, _)| event);
    let profiles = events.map(|event| made.profile(event)).collect();
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

fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(OneValue::Text(text.into())) }
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
    let attribute =
        |(key, value): (&str, &String)| message::KeyValue { key: key.into(), value: Some(text(value)) };
    message::Resource { attributes: known.map(attribute).collect() }
}

/// A table of the dictionary.
struct Rows<K, T> {
    list: Vec<T>,
    known: HashMap<K, i32>,
}

impl<K: Eq + Hash, T> Rows<K, T> {
    /// With the first row that says nothing.
    fn new(none: T) -> Self {
        Rows { list: vec![none], known: HashMap::new() }
    }

    fn known(&self, key: &K) -> Option<i32> {
        self.known.get(key).copied()
    }

    fn add(&mut self, key: K, row: T) -> i32 {
        // More rows than that don't fit in memory.
        let place = i32::try_from(self.list.len()).unwrap_or(i32::MAX);
        self.list.push(row);
        self.known.insert(key, place);
        place
    }
}

/// What tells samples of one event apart.
type Whose = (ThreadId, Option<StackId>);

struct Made<'p> {
    profile: &'p Profile,
    strings: Rows<String, String>,
    attributes: Rows<(&'static str, String), message::Attribute>,
    mappings: Rows<DsoId, message::OtlpMapping>,
    functions: Rows<message::OtlpFunction, message::OtlpFunction>,
    locations: Rows<FrameId, message::Location>,
    stacks: Rows<StackId, message::Stack>,
}

impl<'p> Made<'p> {
    fn new(profile: &'p Profile) -> Self {
        Made {
            profile,
            strings: Rows { list: vec![String::new()], known: [(String::new(), 0)].into() },
            attributes: Rows::new(message::Attribute::default()),
            mappings: Rows::new(message::OtlpMapping::default()),
            functions: Rows::new(message::OtlpFunction::default()),
            locations: Rows::new(message::Location::default()),
            stacks: Rows::new(message::Stack::default()),
        }
    }

    fn dictionary(self) -> message::Dictionary {
        message::Dictionary {
            mapping_table: self.mappings.list,
            location_table: self.locations.list,
            function_table: self.functions.list,
            link_table: vec![message::Link {}],
            string_table: self.strings.list,
            attribute_table: self.attributes.list,
            stack_table: self.stacks.list,
        }
    }

    fn profile(&mut self, event: EventId) -> message::Profile {
        let meta = &self.profile.meta;
        let one = &self.profile.events[event];
        let name = match self.profile.strings.get(one.name) {
            // What readers know clocks by.
            "cpu-clock" | "task-clock" => "cpu",
            "off-cpu" => "off_cpu",
            name => name,
        };
        let unit = match self.profile.strings.get(one.unit) {
            "ns" => "nanoseconds",
            "" => "count",
            unit => unit,
        };
        let kind = message::ValueType { type_strindex: self.string(name), unit_strindex: self.string(unit) };
        let mut sums: BTreeMap<Whose, (Vec<u64>, Vec<i64>)> = BTreeMap::new();
        for sample in self.profile.samples.iter().filter(|sample| sample.event == event) {
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
            let stack_index = stack.map_or(0, |stack| self.stack(stack));
            let attribute_indices = self.whose(thread);
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

    fn string(&mut self, text: &str) -> i32 {
        let known = self.strings.known.get(text).copied();
        known.unwrap_or_else(|| self.strings.add(text.to_owned(), text.to_owned()))
    }

    fn attribute(&mut self, name: &'static str, value: AnyValue) -> i32 {
        let key = (name, format!("{value:?}"));
        if let Some(known) = self.attributes.known(&key) {
            return known;
        }
        let key_strindex = self.string(name);
        self.attributes.add(key, message::Attribute { key_strindex, value: Some(value) })
    }

    fn whose(&mut self, thread: ThreadId) -> Vec<i32> {
        let profile = self.profile;
        let one = &profile.threads[thread];
        let Process { pid, exe, .. } = profile.processes[one.process];
        let mut attributes = Vec::new();
        for (name, value) in [("process.executable.path", exe), ("thread.name", one.comm)] {
            let value = profile.strings.get(value);
            if !value.is_empty() {
                attributes.push(self.attribute(name, text(value)));
            }
        }
        for (name, id) in [("process.pid", pid), ("thread.id", one.tid)] {
            if id != Process::UNKNOWN {
                attributes.push(self.attribute(name, AnyValue { value: Some(OneValue::Number(id.into())) }));
            }
        }
        attributes
    }

    fn stack(&mut self, stack: StackId) -> i32 {
        if let Some(known) = self.stacks.known(&stack) {
            return known;
        }
        let frames: Vec<FrameId> = self.profile.frames_of(Some(stack)).collect();
        let location_indices = frames.into_iter().map(|frame| self.location(frame)).collect();
        self.stacks.add(stack, message::Stack { location_indices })
    }

    fn location(&mut self, id: FrameId) -> i32 {
        if let Some(known) = self.locations.known(&id) {
            return known;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let kind = match frame.kind {
            FrameKind::Kernel => "kernel",
            FrameKind::User | FrameKind::Truncation(_) => "native",
        };
        let mapping = frame.dso.filter(|_| frame.cut().is_none());
        let location = message::Location {
            mapping_index: mapping.map_or(0, |dso| self.mapping(dso)),
            address: if profile.has_address(id) { frame.lookup().0 } else { 0 },
            lines: match frame.cut() {
                Some(cut) => vec![self.line(&format!("[{}]", cut.text()), "", "", 0)],
                None => {
                    let text = |id| profile.strings.get(id);
                    let lines = profile.symbols.of(id).iter();
                    let line = |line: &plumb_profile::Line| {
                        let function = &profile.symbols.functions[line.function];
                        let (name, linkage) = (text(function.name), text(function.linkage_name));
                        self.line(name, linkage, text(line.file), line.line)
                    };
                    lines.map(line).collect()
                }
            },
            attribute_indices: vec![self.attribute("profile.frame.type", text(kind))],
        };
        self.locations.add(id, location)
    }

    fn line(&mut self, name: &str, linkage: &str, file: &str, line: u32) -> message::Line {
        let function = message::OtlpFunction {
            name_strindex: self.string(name),
            system_name_strindex: self.string(if linkage.is_empty() { name } else { linkage }),
            filename_strindex: self.string(file),
            start_line: 0,
        };
        let known = self.functions.known(&function);
        let function_index = known.unwrap_or_else(|| self.functions.add(function, function));
        message::Line { function_index, line: line.into() }
    }

    fn mapping(&mut self, id: DsoId) -> i32 {
        if let Some(known) = self.mappings.known(&id) {
            return known;
        }
        let Dso { path, build_id, kind, .. } = &self.profile.dsos[id];
        let build_id = build_id.as_ref().filter(|_| *kind == DsoKind::File);
        let attribute_indices = build_id
            .map(|id| self.attribute("process.executable.build_id.gnu", text(&id.to_string())))
            .into_iter()
            .collect();
        let filename_strindex = self.string(self.profile.strings.get(*path));
        self.mappings.add(
            id,
            message::OtlpMapping { filename_strindex, attribute_indices, ..message::OtlpMapping::default() },
        )
    }
}
