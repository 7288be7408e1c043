//! Writes a profile in pprof's format.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_profile::{Dso, DsoId, FrameId, Id, Process, Profile, StackId, ThreadId, UnnamedFunctions};
use prost::Message;

use super::message;

/// Writes one pprof sample for each distinct stack of a thread, with the number of samples and a value for each event.
///
/// Labels: `thread` (its name), `pid`, `tid`. The root of a truncated stack is a function named after the reason, in brackets. Functions and lines are the
/// profile's: a reader need not look anything up.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut made = Made::new(profile);
    made.types();
    made.main_file();
    made.samples();
    made.facts();
    let mut mapping: Vec<message::PprofMapping> = made.mappings.into_values().collect();
    mapping.sort_by_key(|mapping| mapping.id);
    let bytes = message::Profile {
        string_table: made.strings.list,
        function: made.functions.into_values().collect(),
        mapping,
        ..made.message
    }
    .encode_to_vec();
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&bytes)?;
    out.finish()?.flush()
}

/// The string table.
struct Strings {
    list: Vec<String>,
    known: HashMap<String, i64>,
}

impl Strings {
    fn add(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let place = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), place);
        place
    }
}

/// The key of a function in pprof: name, linkage name, file, first line.
type FunctionKey = (i64, i64, i64, i64);

struct Made<'p> {
    profile: &'p Profile,
    message: message::Profile,
    /// Index of the first event's type of value.
    first_event: usize,
    strings: Strings,
    functions: BTreeMap<u64, message::PprofFunction>,
    function_ids: HashMap<FunctionKey, u64>,
    mappings: BTreeMap<DsoId, message::PprofMapping>,
    locations: HashMap<FrameId, u64>,
    unnamed: UnnamedFunctions,
}

impl<'p> Made<'p> {
    fn new(profile: &'p Profile) -> Self {
        let strings = Strings { list: vec![String::new()], known: [(String::new(), 0)].into() };
        Made {
            profile,
            message: message::Profile::default(),
            first_event: 0,
            strings,
            functions: BTreeMap::new(),
            function_ids: HashMap::new(),
            mappings: BTreeMap::new(),
            locations: HashMap::new(),
            unnamed: UnnamedFunctions::of(profile),
        }
    }

    /// Adds the types: the number of samples, unless an event counts just that, and the weight by event.
    fn types(&mut self) {
        let (samples, count) = (self.strings.add("samples"), self.strings.add("count"));
        let text = |id| self.profile.strings.get(id);
        let mut events = self.profile.events.rows().iter();
        if !events.any(|event| (text(event.name), text(event.unit)) == ("samples", "")) {
            self.message.sample_type.push(message::ValueType { kind: samples, unit: count });
        }
        self.first_event = self.message.sample_type.len();
        for event in self.profile.events.rows() {
            // Names by which readers recognize clocks.
            let kind = match self.profile.strings.get(event.name) {
                "cpu-clock" | "task-clock" => "cpu",
                name => name,
            };
            let unit = match self.profile.strings.get(event.unit) {
                "ns" => "nanoseconds",
                "" => "count",
                unit => unit,
            };
            let value = message::ValueType { kind: self.strings.add(kind), unit: self.strings.add(unit) };
            self.message.sample_type.push(value);
        }
        self.message.default_sample_type =
            self.message.sample_type.get(self.first_event).map_or(samples, |one| one.kind);
    }

    /// Puts the file of the most sampled program first: readers name the profile after it.
    fn main_file(&mut self) {
        let profile = self.profile;
        let mut by_program: HashMap<_, u64> = HashMap::new();
        for sample in profile.samples.iter() {
            *by_program.entry(profile.processes[profile.threads[sample.thread].process].exe).or_default() +=
                1;
        }
        let most = by_program.into_iter().max_by_key(|&(exe, samples)| (samples, exe)).map(|(exe, _)| exe);
        let found = profile.dsos.iter().find(|(_, dso)| Some(dso.path) == most).map(|(id, _)| id);
        if let Some(id) = found {
            self.mapping(id);
        }
    }

    fn samples(&mut self) {
        let mut sums: BTreeMap<(ThreadId, Option<StackId>), Vec<i64>> = BTreeMap::new();
        let values = self.message.sample_type.len();
        for sample in self.profile.samples.iter() {
            let sum = sums.entry((sample.thread, sample.stack)).or_insert_with(|| vec![0; values]);
            if self.first_event == 1 {
                sum[0] += 1;
            }
            let weight = i64::try_from(sample.weight).unwrap_or(i64::MAX);
            if let Some(value) = sum.get_mut(sample.event.index() + self.first_event) {
                *value = value.saturating_add(weight);
            }
        }
        for ((thread, stack), value) in sums {
            let frames: Vec<FrameId> = self.profile.frames_of(stack).collect();
            let location_id = frames.into_iter().map(|frame| self.location(frame)).collect();
            let label = self.labels(thread);
            self.message.sample.push(message::PprofSample { location_id, value, label });
        }
    }

    fn labels(&mut self, thread: ThreadId) -> Vec<message::Label> {
        let one = &self.profile.threads[thread];
        let pid = self.profile.processes[one.process].pid;
        let comm = self.strings.add(self.profile.strings.get(one.comm));
        let mut label = |key: &str, text: i64, number: u32| message::Label {
            key: self.strings.add(key),
            text,
            number: number.into(),
        };
        let mut labels = vec![label("thread", comm, 0)];
        for (key, id) in [("pid", pid), ("tid", one.tid)] {
            if id != Process::UNKNOWN {
                labels.push(label(key, 0, id));
            }
        }
        labels
    }

    fn location(&mut self, id: FrameId) -> u64 {
        if let Some(&known) = self.locations.get(&id) {
            return known;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let mapping_id = frame.dso.filter(|_| frame.cut().is_none()).map_or(0, |dso| self.mapping(dso));
        let line = match (frame.cut(), profile.symbols.of(id)) {
            (Some(cut), _) => vec![self.line(&format!("[{}]", cut.text()), "", "", (0, 0))],
            (None, []) => vec![self.line(&self.unnamed.find(profile, id).name(profile), "", "", (0, 0))],
            (None, lines) => lines
                .iter()
                .map(|line| {
                    let function = &profile.symbols.functions[line.function];
                    let text = |id| profile.strings.get(id);
                    let lines = (function.start_line, line.line);
                    self.line(text(function.name), text(function.linkage_name), text(line.file), lines)
                })
                .collect(),
        };
        if let Some(mapping) = frame.dso.and_then(|dso| self.mappings.get_mut(&dso)) {
            mapping.memory_limit = mapping.memory_limit.max(frame.address.0.saturating_add(1));
            mapping.has_inline_frames |= line.len() > 1;
            mapping.has_line_numbers |= line.iter().any(|line| line.line > 0);
            mapping.has_filenames |= mapping.has_line_numbers;
        }
        let number = self.message.location.len() as u64 + 1;
        let address = if profile.has_address(id) { frame.lookup().0 } else { 0 };
        self.message.location.push(message::Location { id: number, mapping_id, address, line });
        self.locations.insert(id, number);
        number
    }

    /// Returns a line of a function, with the function's first line.
    fn line(&mut self, name: &str, linkage: &str, file: &str, (start, line): (u32, u32)) -> message::Line {
        let linkage = if linkage.is_empty() { name } else { linkage };
        let key =
            (self.strings.add(name), self.strings.add(linkage), self.strings.add(file), i64::from(start));
        let next = self.functions.len() as u64 + 1;
        let function_id = *self.function_ids.entry(key).or_insert(next);
        let (name, system_name, filename, start_line) = key;
        let function = message::PprofFunction { id: function_id, name, system_name, filename, start_line };
        self.functions.entry(function_id).or_insert(function);
        message::Line { function_id, line: line.into() }
    }

    fn mapping(&mut self, id: DsoId) -> u64 {
        if let Some(known) = self.mappings.get(&id) {
            return known.id;
        }
        let Dso { path, build_id, .. } = &self.profile.dsos[id];
        let mapping = message::PprofMapping {
            id: self.mappings.len() as u64 + 1,
            filename: self.strings.add(self.profile.strings.get(*path)),
            build_id: build_id.as_ref().map_or(0, |id| self.strings.add(&id.to_string())),
            // Nothing is left to look up.
            has_functions: true,
            ..message::PprofMapping::default()
        };
        self.mappings.insert(id, mapping);
        mapping.id
    }

    fn facts(&mut self) {
        let meta = &self.profile.meta;
        self.message.time_nanos = i64::try_from(meta.start_unix_ns).unwrap_or(0);
        self.message.duration_nanos = i64::try_from(meta.duration_ns).unwrap_or(0);
        self.message.period_type = self.message.sample_type.get(self.first_event).copied();
        self.message.period = meta.frequency_hz.map_or(0, |hz| 1_000_000_000 / i64::from(hz.max(1)));
        let mut comments = vec![meta.recorder.clone()];
        comments.extend((!meta.command.is_empty()).then(|| meta.command.join(" ")));
        comments.extend(meta.warnings.iter().cloned());
        self.message.comment = comments.iter().map(|text| self.strings.add(text)).collect();
    }
}
