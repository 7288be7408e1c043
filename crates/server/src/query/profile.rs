//! Merged profiles in pprof's format, with files and lines.

use std::collections::{HashMap, HashSet};

use plumb_formats::pprof::message::{
    Line, Location, PprofFunction, PprofMapping, PprofSample, Profile, ValueType,
};
use plumb_store::{
    Cancellation, Dictionary, FrameKey, Labels, PROFILE_TYPE, ProfileType, StackNodeId, StoredFrame, TextId,
};
use prost::Message;

use super::call_site::{self, BeginsWith};
use super::go_pgo;
use super::merge::without_ids;
use super::rows::{CountedRows, SampleRows};
use super::selection::{Range, of_type, profile_type, select};
use crate::app::Context;
use crate::connect::Answer;
use crate::error::{ApiError, ErrorCode};
use crate::pyroscope::profile_json::Json;
use crate::pyroscope::querier::{MergeProfileRequest, StacktracesRequest};

/// Start address of the mapping of a file whose frames have file offsets, and the offset mapped there.
const FILE_OFFSETS: u64 = 4096;

/// A profile that answers a query.
pub(crate) struct MergedProfile(pub Profile);

impl Answer for MergedProfile {
    fn proto(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    fn json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Json(&self.0))
    }
}

/// All samples of a selection, merged by stack.
pub(crate) fn merge_profile(
    context: &Context,
    request: MergeProfileRequest,
) -> Result<MergedProfile, ApiError> {
    without_ids(&[
        ("profile_id_selector", &request.profile_id_selector),
        ("trace_id_selector", &request.trace_id_selector),
    ])?;
    if request.max_nodes.unwrap_or(0) != 0 {
        let message = "max_nodes is not supported for whole profiles: leave it out";
        return Err(ApiError::new(ErrorCode::Unimplemented, message));
    }
    let mut selector = request.stack_trace_selector;
    let go_pgo = selector.as_mut().and_then(|selector| selector.go_pgo.take());
    // Pyroscope ignores functions beside it.
    let functions = call_site::functions(selector.filter(|_| go_pgo.is_none()))?;
    let kind = profile_type(&request.profile_type_id)?;
    let selector = of_type(&request.profile_type_id, &request.label_selector)?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    let batch = select(context, selector, range)?.batch()?;
    let rows = SampleRows::all(&batch);
    let (mut profile, inlined) = written(rows, &functions, &[kind], range.end, &context.cancellation)?;
    if let Some(options) = go_pgo {
        go_pgo::reduce(&mut profile, &inlined, &options);
    }
    Ok(MergedProfile(profile))
}

/// All samples of a selection, merged by stack, each with its number of samples where all profiles have them.
pub(crate) fn counted_profile(context: &Context, request: &StacktracesRequest) -> Result<Profile, ApiError> {
    CountedRows::read(context, request, usize::MAX)?.merged(context)
}

/// The profile of a batch with these sample types. The last one is the main one.
pub(super) fn merged(
    rows: SampleRows<'_>,
    kinds: &[ProfileType],
    end: i64,
    cancellation: &Cancellation,
) -> Result<Profile, ApiError> {
    written(rows, &[], kinds, end, cancellation).map(|(profile, _)| profile)
}

/// As [`merged`], of stacks that begin with these functions, with the locations that are inlined calls.
fn written(
    SampleRows { batch, samples }: SampleRows<'_>,
    functions: &[String],
    kinds: &[ProfileType],
    end: i64,
    cancellation: &Cancellation,
) -> Result<(Profile, HashSet<u64>), ApiError> {
    let mut begins = BeginsWith::new(&batch.dictionary, functions);
    let ids: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    let place = |labels: &Labels| {
        let id = labels.get(PROFILE_TYPE).unwrap_or_default();
        ids.iter().position(|one| one == id).unwrap_or(kinds.len().saturating_sub(1))
    };
    let places: Vec<usize> = batch.all_series().map(place).collect();
    let mut sums: HashMap<StackNodeId, Vec<i64>> = HashMap::new();
    for sample in samples {
        cancellation.check()?;
        if functions.is_empty() || begins.is(sample.stack) {
            let values = sums.entry(sample.stack).or_insert_with(|| vec![0; kinds.len()]);
            let sum = &mut values[places[sample.series.place()]];
            *sum = sum.saturating_add(sample.value);
        }
    }
    let mut sums: Vec<(StackNodeId, Vec<i64>)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|&(stack, _)| stack);
    let mut writer = Writer::new(&batch.dictionary);
    for (stack, values) in sums {
        cancellation.check()?;
        writer.sample(stack, values);
    }
    let inlined = std::mem::take(&mut writer.inlined);
    Ok((writer.finish(kinds, end), inlined))
}

struct Writer<'d> {
    dictionary: &'d Dictionary,
    profile: Profile,
    strings: HashMap<String, i64>,
    texts: HashMap<TextId, i64>,
    locations: HashMap<FrameKey, u64>,
    /// Locations that are calls inlined into the next one of a stack.
    inlined: HashSet<u64>,
    functions: HashMap<(TextId, TextId, TextId, u32), u64>,
    mappings: HashMap<(TextId, TextId, bool), u64>,
}

impl<'d> Writer<'d> {
    fn new(dictionary: &'d Dictionary) -> Self {
        Self {
            dictionary,
            profile: Profile { string_table: vec![String::new()], ..Profile::default() },
            strings: HashMap::new(),
            texts: [(TextId::default(), 0)].into(),
            locations: HashMap::new(),
            inlined: HashSet::new(),
            functions: HashMap::new(),
            mappings: HashMap::new(),
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let place = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), place);
        place
    }

    fn text(&mut self, id: TextId) -> i64 {
        if let Some(&known) = self.texts.get(&id) {
            return known;
        }
        let dictionary = self.dictionary;
        let place = self.string(dictionary.resolve(id));
        self.texts.insert(id, place);
        place
    }

    /// Every frame has a location of its own, inlined calls too: the store does not record which of them share an instruction.
    fn sample(&mut self, stack: StackNodeId, value: Vec<i64>) {
        let location_id = self.dictionary.frames_of(stack).map(|frame| self.location(frame)).collect();
        self.profile.sample.push(PprofSample { location_id, value, label: Vec::new() });
    }

    fn location(&mut self, key: FrameKey) -> u64 {
        if let Some(&known) = self.locations.get(&key) {
            return known;
        }
        let frame = self.dictionary.frame_at(key);
        let mapping_id = self.mapping(frame);
        let line = match frame.function == TextId::default() {
            true => Vec::new(),
            false => vec![Line { function_id: self.function(frame), line: frame.line.into() }],
        };
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, mapping_id, address: frame.address, line });
        self.locations.insert(key, id);
        if frame.inlined {
            self.inlined.insert(id);
        }
        id
    }

    fn function(&mut self, frame: StoredFrame) -> u64 {
        let key = (frame.function, frame.system_name, frame.file, frame.start_line);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let id = self.profile.function.len() as u64 + 1;
        let name = self.text(frame.function);
        let system_name = match self.text(frame.system_name) {
            0 => name,
            other => other,
        };
        let filename = self.text(frame.file);
        let start_line = frame.start_line.into();
        self.profile.function.push(PprofFunction { id, name, system_name, filename, start_line });
        self.functions.insert(key, id);
        id
    }

    fn mapping(&mut self, frame: StoredFrame) -> u64 {
        let key = (frame.mapping, frame.build_id, frame.is_file_offset);
        if key == (TextId::default(), TextId::default(), false) {
            return 0;
        }
        let known = self.mappings.get(&key).copied();
        let id = known.unwrap_or(self.profile.mapping.len() as u64 + 1);
        if known.is_none() {
            let (filename, build_id) = (self.text(frame.mapping), self.text(frame.build_id));
            // Assumed until a frame contradicts it.
            let (has_functions, has_filenames, has_line_numbers) = (true, true, true);
            // A memory start marks addresses as file offsets; this one maps each offset to itself.
            let (memory_start, memory_limit) =
                if frame.is_file_offset { (FILE_OFFSETS, u64::MAX) } else { (0, 0) };
            let mapping = PprofMapping {
                id,
                memory_start,
                memory_limit,
                file_offset: memory_start,
                filename,
                build_id,
                has_functions,
                has_filenames,
                has_line_numbers,
                ..PprofMapping::default()
            };
            self.profile.mapping.push(mapping);
            self.mappings.insert(key, id);
        }
        if frame.function == TextId::default() {
            let mapping = &mut self.profile.mapping[id as usize - 1];
            mapping.has_functions = false;
            mapping.has_filenames = false;
            mapping.has_line_numbers = false;
        }
        id
    }

    fn finish(mut self, kinds: &[ProfileType], end: i64) -> Profile {
        for kind in kinds {
            let (kind, unit) = (self.string(&kind.sample_type), self.string(&kind.sample_unit));
            self.profile.sample_type.push(ValueType { kind, unit });
        }
        let Some(kind) = kinds.last() else { return self.profile };
        let period_type =
            ValueType { kind: self.string(&kind.period_type), unit: self.string(&kind.period_unit) };
        self.profile.period_type = Some(period_type);
        self.profile.default_sample_type = self.profile.sample_type.last().map_or(0, |one| one.kind);
        self.profile.time_nanos = end.saturating_mul(1_000_000);
        // The value of one count in a merged profile: one unit, or a second of CPU time.
        self.profile.period = if kind.sample_type == "cpu" { 1_000_000_000 } else { 1 };
        self.profile
    }
}
