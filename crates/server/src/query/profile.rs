//! Merged profiles in pprof's format, with files and lines.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use plumb_formats::pprof::message::{
    Line, Location, PprofFunction, PprofMapping, PprofSample, Profile, ValueType,
};
use plumb_report::findings::{AnswerBound, BoundReason};
use plumb_store::{
    Batch, Cancellation, Dictionary, FrameKey, Labels, Millis, PROFILE_TYPE, ProfileType, RowsTaken, SERVICE,
    Selected, Selector, SeriesKey, StackNodeId, StoreError, StoredFrame, StoredSample, TextId,
};
use prost::Message;

use super::call_site::{self, BeginsWith};
use super::go_pgo;
use super::merge::without_ids;
use super::selection::{Range, of_type, profile_type, select};
use crate::app::Context;
use crate::connect::Answer;
use crate::error::{ApiError, ErrorCode};
use crate::wire::profile_json::Json;
use crate::wire::querier::{MergeProfileRequest, StacktracesRequest};

/// Labels that differ between the kinds of one profile.
const KIND_LABELS: [&str; 3] = [PROFILE_TYPE, "__type__", "__unit__"];
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

/// Samples, with what they refer to.
#[derive(Clone, Copy)]
pub(super) struct SampleRows<'b> {
    pub batch: &'b Batch,
    pub samples: &'b [StoredSample],
}

impl<'b> SampleRows<'b> {
    fn all(batch: &'b Batch) -> Self {
        Self { batch, samples: batch.samples() }
    }

    /// The series that have some of the samples, by place.
    pub fn series(&self) -> BTreeMap<usize, &'b Labels> {
        let keys: HashSet<SeriesKey> = self.samples.iter().map(|sample| sample.series).collect();
        keys.into_iter().map(|key| (key.place(), self.batch.labels(key))).collect()
    }
}

/// Samples of a selection with their numbers where all profiles have them.
pub(super) struct CountedRows {
    batch: Arc<Batch>,
    /// Samples of the batch that count; `None`: all.
    samples: Option<Vec<StoredSample>>,
    /// Whether all profiles have the numbers of their samples.
    pub is_counted: bool,
    /// The part that was read, if not all.
    pub taken: Option<RowsTaken>,
    kinds: Vec<ProfileType>,
    end: i64,
}

impl CountedRows {
    /// Reads at most `rows` rows.
    pub fn read(context: &Context, request: &StacktracesRequest, rows: usize) -> Result<Self, ApiError> {
        let (selected, end) = counted(context, request)?;
        let (selected, taken) = if rows == usize::MAX { (selected, None) } else { selected.at_most(rows)? };
        let batch = Arc::new(selected.batch()?);
        let new = Self { batch, samples: None, is_counted: true, taken, kinds: Vec::new(), end };
        new.with_kinds(context, request)
    }

    /// Reads the sums of at most `most` stacks, those with the largest values. Says so if there are more.
    pub fn heaviest(
        context: &Context,
        request: &StacktracesRequest,
        most: usize,
    ) -> Result<(Self, Option<AnswerBound>), ApiError> {
        let (selected, end) = counted(context, request)?;
        let (count, kind) = kinds(request)?;
        let (series, profiles) = selected.profiles()?;
        let profiles = profiles.iter().map(|profile| (profile.series, profile.time));
        let series = series.iter().enumerate().collect();
        let ids = (&*count.to_string(), &*kind.to_string());
        let is_counted = kind == count || is_counted((series, profiles), ids, &context.cancellation)?;
        let heaviest = selected.heaviest_stacks(&kind.to_string(), most)?;
        let bound = (heaviest.taken < heaviest.of)
            .then(|| AnswerBound::new(BoundReason::Stacks, heaviest.taken, heaviest.of));
        let kinds = if kind == count || !is_counted { vec![kind] } else { vec![count, kind] };
        let batch = Arc::new(heaviest.batch);
        Ok((Self { batch, samples: None, is_counted, taken: None, kinds, end }, bound))
    }

    /// Reads the rows of several services at once, as each reading of a block takes as long as all. `None` if there are more than `rows`, or more than
    /// there is memory for.
    pub fn by_service(
        context: &Context,
        request: &StacktracesRequest,
        rows: usize,
    ) -> Result<Option<HashMap<String, Self>>, ApiError> {
        let (selected, end) = counted(context, request)?;
        let (selected, taken) = selected.at_most(rows)?;
        if taken.is_some() {
            return Ok(None);
        }
        let batch = match selected.batch() {
            Err(StoreError::TooLarge { .. }) => return Ok(None),
            batch => Arc::new(batch?),
        };
        let of = by_service(&batch, context)?;
        let one = |(service, samples): (&str, Vec<StoredSample>)| {
            let (batch, samples) = (batch.clone(), Some(samples));
            let new = Self { batch, samples, is_counted: true, taken: None, kinds: Vec::new(), end };
            Ok((service.to_owned(), new.with_kinds(context, request)?))
        };
        of.into_iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    fn with_kinds(self, context: &Context, request: &StacktracesRequest) -> Result<Self, ApiError> {
        let (count, kind) = kinds(request)?;
        if kind == count {
            return Ok(Self { kinds: vec![kind], ..self });
        }
        let ids = (&*count.to_string(), &*kind.to_string());
        let rows = self.rows();
        let profiles = rows.samples.iter().map(|sample| (sample.series.place(), sample.time));
        let is_counted = is_counted((rows.series(), profiles), ids, &context.cancellation)?;
        let kinds = if is_counted { vec![count, kind] } else { vec![kind] };
        Ok(Self { is_counted, kinds, ..self })
    }

    /// The samples.
    pub fn rows(&self) -> SampleRows<'_> {
        let samples = self.samples.as_deref().unwrap_or(self.batch.samples());
        SampleRows { batch: &self.batch, samples }
    }

    /// The samples merged by stack.
    pub fn merged(&self, context: &Context) -> Result<Profile, ApiError> {
        merged(self.rows(), &self.kinds, self.end, &context.cancellation)
    }
}

/// The samples of each service.
pub(super) fn by_service<'b>(
    batch: &'b Batch,
    context: &Context,
) -> Result<HashMap<&'b str, Vec<StoredSample>>, ApiError> {
    let services: Vec<&str> =
        batch.all_series().map(|labels| labels.get(SERVICE).unwrap_or_default()).collect();
    let mut of: HashMap<&str, Vec<StoredSample>> = HashMap::new();
    for sample in batch.samples() {
        context.check()?;
        of.entry(services[sample.series.place()]).or_default().push(*sample);
    }
    Ok(of)
}

/// The type of a request's values, behind that of their numbers.
fn kinds(request: &StacktracesRequest) -> Result<(ProfileType, ProfileType), ApiError> {
    let kind = profile_type(&request.profile_type_id)?;
    let (sample_type, sample_unit) = ("samples".to_owned(), "count".to_owned());
    Ok((ProfileType { sample_type, sample_unit, ..kind.clone() }, kind))
}

/// The selected values and their numbers, and the end of the selected time.
fn counted(context: &Context, request: &StacktracesRequest) -> Result<(Selected, i64), ApiError> {
    let (count, kind) = kinds(request)?;
    let selector = Selector::parse(&request.label_selector)?;
    let selector = selector.with_any(PROFILE_TYPE, &[&count.to_string(), &kind.to_string()])?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    Ok((select(context, selector, range)?, range.end))
}

/// Whether each profile with values has the numbers of its samples beside them: not all clients send them. Profiles are given by series and time, some
/// more than once.
fn is_counted(
    (series, profiles): (BTreeMap<usize, &Labels>, impl Iterator<Item = (usize, Millis)>),
    (count, values): (&str, &str),
    cancellation: &Cancellation,
) -> Result<bool, ApiError> {
    let without_kind = |labels: &Labels| {
        let mut labels = labels.clone();
        KIND_LABELS.iter().for_each(|name| labels.set(*name, ""));
        labels
    };
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut sources = HashMap::new();
    for (series, labels) in series {
        let new = places.len();
        let source = *places.entry(without_kind(labels)).or_insert(new);
        sources.insert(series, (source, labels.get(PROFILE_TYPE).unwrap_or_default()));
    }
    let (mut counted, mut valued) = (HashSet::new(), HashSet::new());
    for (series, time) in profiles {
        cancellation.check()?;
        let (source, kind) = sources[&series];
        let profile = (source, time);
        if kind == count {
            counted.insert(profile);
        } else if kind == values {
            valued.insert(profile);
        }
    }
    Ok(!valued.is_empty() && valued.is_subset(&counted))
}

/// The profile of a batch with these sample types, the last of which is the main one.
fn merged(
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
